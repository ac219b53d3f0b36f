import { Command } from 'commander';
import { createCommand as createCreate } from './org-create.ts';
import { createCommand as createLs } from './org-ls.ts';
import { createCommand as createQuota } from './org-quota.ts';

export function createCommand(): Command {
  const org = new Command('org').description(
    'Organizations of the server on this machine, whether it runs or not. Run as root or as the user of the server.',
  );
  for (const create of [createCreate, createLs, createQuota]) org.addCommand(create());
  return org;
}
