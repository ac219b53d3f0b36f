import { Command } from 'commander';
import { createCommand as createCreate } from './token-create.ts';
import { createCommand as createLs } from './token-ls.ts';
import { createCommand as createRevoke } from './token-revoke.ts';

export function createCommand(): Command {
  const token = new Command('token').description(
    'Personal access tokens of users: they act for a person in each of their organizations.\n' +
      'On the machine of the server: as root or as its user, whether it runs or not.\n' +
      'With a context or SVC_API_URL: over REST, with your personal access token.',
  );
  for (const create of [createCreate, createLs, createRevoke]) token.addCommand(create());
  return token;
}
