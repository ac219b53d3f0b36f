import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** Runs a program and returns its output; fails with its stderr. */
export async function command(program: string, ...parameters: readonly string[]): Promise<string> {
  return (await run(program, parameters, { timeout: 100_000 })).stdout;
}

/** The command line that runs a program inside the network namespace pinned at `path`. */
export function inNamespace(path: string, ...line: readonly string[]): [string, ...string[]] {
  return ['nsenter', `--net=${path}`, '--', ...line];
}
