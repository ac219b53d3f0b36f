import { Command } from 'commander';
import { createCommand as createLs } from './orphan-ls.ts';
import { createCommand as createRm } from './orphan-rm.ts';

export function createCommand(): Command {
  return new Command('orphan')
    .description(
      'Sandboxes, volumes and snapshots that the engine of this machine has and no row of the store knows,\n' +
        'because an older store was put back, or the database was lost. They run on, and keep their disks,\n' +
        'until they are removed here.',
    )
    .addCommand(createLs())
    .addCommand(createRm());
}
