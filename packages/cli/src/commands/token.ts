import { Command } from 'commander';
import { createCommand as createCreate } from './token-create.ts';
import { createCommand as createLs } from './token-ls.ts';
import { createCommand as createRevoke } from './token-revoke.ts';

export function createCommand(): Command {
  const token = new Command('token').description(
    'Personal access tokens of users: they act for a person in each of their organizations.\n' +
      'Run as root or as the user of the server, whether it runs or not.',
  );
  for (const create of [createCreate, createLs, createRevoke]) token.addCommand(create());
  return token;
}
