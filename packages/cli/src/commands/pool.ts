import { Command } from 'commander';
import { createCommand as createLs } from './pool-ls.ts';

export function createCommand(): Command {
  return new Command('pool')
    .description('Sandboxes that the engine keeps started for the next caller.')
    .addCommand(createLs());
}
