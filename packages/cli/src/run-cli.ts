import { CommanderError, type Command } from 'commander';
import { translateForeignWords } from './foreign-words.ts';
import { createProgram, namedCommands } from './program.ts';
import { exitOnBrokenPipe } from './terminal/broken-pipe.ts';

/**
 * Runs one command line; returns the code to exit with: 0 fine, 1 failed, 2 wrong usage. Commands that run a process exit with
 * its code, and with 125 when they fail themselves.
 */
export async function runCli(words: readonly string[]): Promise<number> {
  exitOnBrokenPipe();
  let program: Command | undefined;
  try {
    const ours = translateForeignWords(words);
    program = await createProgram(ours);
    await program.parseAsync(ours, { from: 'user' });
    return Number(process.exitCode ?? 0);
  } catch (error) {
    // Commander has printed its message already; all of its errors are usage errors.
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
    const { reportError } = await import('./terminal/report-error.ts');
    return reportError(error, words, namedCommands(words)[0], program);
  }
}
