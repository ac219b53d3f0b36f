import { Command } from 'commander';
import { createCommand as createCp } from './volume-cp.ts';
import { createCommand as createCreate } from './volume-create.ts';
import { createCommand as createInspect } from './volume-inspect.ts';
import { createCommand as createLs } from './volume-ls.ts';
import { createCommand as createRm } from './volume-rm.ts';

export function createCommand(): Command {
  const volume = new Command('volume').description(
    'Storage that outlives sandboxes: mount it with svc run -v.',
  );
  for (const create of [createLs, createCreate, createInspect, createCp, createRm])
    volume.addCommand(create());
  return volume;
}
