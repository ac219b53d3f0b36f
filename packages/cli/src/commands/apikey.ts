import { Command } from 'commander';
import { createCommand as createCreate } from './apikey-create.ts';
import { createCommand as createLs } from './apikey-ls.ts';
import { createCommand as createRevoke } from './apikey-revoke.ts';

export function createCommand(): Command {
  const apikey = new Command('apikey').description(
    'API keys of organizations, for programs. They work on REST, JSON-RPC and MCP, for their own organization only.\n' +
      'Run as root or as the user of the server, whether it runs or not.',
  );
  for (const create of [createCreate, createLs, createRevoke]) apikey.addCommand(create());
  return apikey;
}
