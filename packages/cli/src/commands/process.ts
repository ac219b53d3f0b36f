import { Command } from 'commander';
import { createCommand as createAttach } from './process-attach.ts';
import { createCommand as createKill } from './process-kill.ts';
import { createCommand as createLogs } from './process-logs.ts';
import { createCommand as createLs } from './process-ls.ts';
import { createCommand as createRm } from './process-rm.ts';

export function createCommand(): Command {
  const process = new Command('process').description(
    'Processes that svc exec --detach has started: they run on when their client goes away, and their output can be read later.',
  );
  for (const create of [createLs, createLogs, createAttach, createKill, createRm])
    process.addCommand(create());
  return process;
}
