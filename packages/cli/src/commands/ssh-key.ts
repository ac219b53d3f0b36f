import { Command } from 'commander';
import { createCommand as createAdd } from './ssh-key-add.ts';
import { createCommand as createLs } from './ssh-key-ls.ts';
import { createCommand as createRm } from './ssh-key-rm.ts';

export function createCommand(): Command {
  const sshKey = new Command('ssh-key').description(
    'Public keys that let you into your sandboxes over SSH, in every organization that you are a member of.\n' +
      'They belong to a user: outside of development mode they take a personal access token, not an API key.',
  );
  for (const create of [createAdd, createLs, createRm]) sshKey.addCommand(create());
  return sshKey;
}
