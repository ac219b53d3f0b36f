import { Command } from 'commander';
import { createCommand as createEnv } from './e2b-env.ts';

export function createCommand(): Command {
  const e2b = new Command('e2b').description("How E2B's clients reach this server, unmodified.");
  e2b.addCommand(createEnv());
  return e2b;
}
