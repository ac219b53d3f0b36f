import { Command } from 'commander';
import { createCommand as createCreate } from './snapshot-create.ts';
import { createCommand as createLs } from './snapshot-ls.ts';
import { createCommand as createRm } from './snapshot-rm.ts';

export function createCommand(): Command {
  const snapshot = new Command('snapshot').description(
    'Copies of the disks of sandboxes, to begin others with.',
  );
  for (const create of [createLs, createCreate, createRm]) snapshot.addCommand(create());
  return snapshot;
}
