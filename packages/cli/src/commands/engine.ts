import { Command } from 'commander';
import { createCommand as createLogs } from './engine-logs.ts';
import { createCommand as createStart } from './engine-start.ts';
import { createCommand as createStatus } from './engine-status.ts';
import { createCommand as createStop } from './engine-stop.ts';

export function createCommand(): Command {
  const engine = new Command('engine').description(
    'The engine: the root process that runs sandboxes on this host. Sandboxes outlive it.',
  );
  for (const create of [createStart, createStop, createStatus, createLogs]) engine.addCommand(create());
  return engine;
}
