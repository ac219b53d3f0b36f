import { Command } from 'commander';
import { createCommand as createVerify } from './audit-verify.ts';

export function createCommand(): Command {
  return new Command('audit')
    .description('The audit events of the server on this machine.')
    .addCommand(createVerify());
}
