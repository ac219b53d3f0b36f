import { Command } from 'commander';
import { createCommand as createLink } from './user-link.ts';

export function createCommand(): Command {
  const user = new Command('user').description(
    'People who sign in.\nOn the machine of the server: as root or as its user, whether it runs or not.',
  );
  return user.addCommand(createLink());
}
