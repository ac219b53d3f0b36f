import { Command } from 'commander';
import { createCommand as createCreate } from './apikey-create.ts';
import { createCommand as createLs } from './apikey-ls.ts';
import { createCommand as createRevoke } from './apikey-revoke.ts';

export function createCommand(): Command {
  const apikey = new Command('apikey').description(
    'API keys of organizations, for programs. They work on REST, JSON-RPC and MCP, for their own organization only.\n' +
      'On the machine of the server: as root or as its user, whether it runs or not.\n' +
      'With a context or SVC_API_URL: over REST, with your personal access token.',
  );
  for (const create of [createCreate, createLs, createRevoke]) apikey.addCommand(create());
  return apikey;
}
