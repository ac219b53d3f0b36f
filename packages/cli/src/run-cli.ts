import { CommanderError } from 'commander';
import { createProgram } from './program.ts';

/** Runs one command line; returns the code to exit with: 0 fine, 1 failed, 2 wrong usage, or the code of the process that was run. */
export async function runCli(words: readonly string[]): Promise<number> {
  // `svc logs web | head`: whoever reads has enough, which is no failure.
  process.stdout.on('error', (error: NodeJS.ErrnoException) => process.exit(error.code === 'EPIPE' ? 0 : 1));
  try {
    const program = await createProgram(words);
    await program.parseAsync(words, { from: 'user' });
    return Number(process.exitCode ?? 0);
  } catch (error) {
    // Commander has printed its message already; everything it finds fault with is usage.
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
    const { reportError } = await import('./terminal/report-error.ts');
    return reportError(error, words);
  }
}
