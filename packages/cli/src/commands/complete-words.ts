import { Command } from 'commander';
import { findCandidates, type CreateProgram } from '../completion/find-candidates.ts';
import { readGlobals } from '../globals.ts';
import { print } from '../terminal/print.ts';

export function createCommand(createProgram: CreateProgram): Command {
  return new Command('complete-words')
    .description('Prints what may come next, one per line; for shells.')
    .argument('<words...>', 'what was typed behind svc; the last one is to be completed')
    .action(async (words: readonly string[], _options: unknown, command: Command) => {
      const candidates = await findCandidates(words, createProgram, readGlobals(command));
      for (const candidate of candidates) print(candidate);
    });
}
