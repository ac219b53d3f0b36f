import { Command } from 'commander';
import { createCommand as createCreate } from './preview-create.ts';
import { createCommand as createLs } from './preview-ls.ts';
import { createCommand as createRevoke } from './preview-revoke.ts';

export function createCommand(): Command {
  const preview = new Command('preview').description(
    'Addresses at which a browser finds a port of a sandbox, below localhost when the server is on this machine.\n' +
      'Others have a domain for them: svc server start --preview-domain preview.example.com',
  );
  for (const create of [createCreate, createLs, createRevoke]) preview.addCommand(create());
  return preview;
}
