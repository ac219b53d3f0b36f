import { Command } from 'commander';
import { createCommand as createLs } from './node-ls.ts';

export function createCommand(): Command {
  return new Command('node').description('The hosts of sandboxes behind a server.').addCommand(createLs());
}
