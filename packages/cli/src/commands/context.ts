import { Command } from 'commander';
import { createCommand as createAdd } from './context-add.ts';
import { createCommand as createLs } from './context-ls.ts';
import { createCommand as createRm } from './context-rm.ts';
import { createCommand as createUse } from './context-use.ts';

export function createCommand(): Command {
  const context = new Command('context').description(
    'Servers that commands can talk to. First comes --context NAME, then SVC_API_URL (or SVC_SERVER_URL) and SVC_API_KEY, then the context in use,\n' +
      'then the server on this machine.',
  );
  for (const create of [createLs, createAdd, createUse, createRm]) context.addCommand(create());
  return context;
}
