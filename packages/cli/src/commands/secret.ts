import { Command } from 'commander';
import { createCommand as createLs } from './secret-ls.ts';
import { createCommand as createRm } from './secret-rm.ts';
import { createCommand as createSet } from './secret-set.ts';

export function createCommand(): Command {
  const secret = new Command('secret').description(
    'Secrets of an organization, which sandboxes use towards certain hosts without ever holding them.\n' +
      'Outside of development mode this takes a personal access token, not an API key.',
  );
  for (const create of [createSet, createLs, createRm]) secret.addCommand(create());
  return secret;
}
