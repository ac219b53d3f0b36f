import { spawn } from '@svc/contract/node-spawn';
import { once } from 'node:events';

/** Longer than any of our tools takes on a loaded machine with a large disk. */
const TIMEOUT_MS = 600_000;
const MAX_OUTPUT_CHARACTERS = 4000;

/** A program of the system ended with an unexpected status. */
export class ToolFailed extends Error {
  readonly status: number | null;

  constructor(tool: string, status: number | null, output: string) {
    super(`${tool} failed with status ${status ?? 'none'}: ${output}`);
    this.name = 'ToolFailed';
    this.status = status;
  }
}

/**
 * Runs a program to its end. Killed when the signal aborts.
 * @throws ToolFailed when its exit status is not in `okStatuses`.
 */
export async function runTool(
  tool: string,
  args: readonly string[],
  signal?: AbortSignal,
  okStatuses: readonly number[] = [0],
): Promise<void> {
  const deadline = AbortSignal.timeout(TIMEOUT_MS);
  const ends = signal ? AbortSignal.any([signal, deadline]) : deadline;
  ends.throwIfAborted();
  // SAFETY: no shell; arguments are made by the engine (paths under its own folder, numbers), never by callers.
  const child = spawn(tool, args, {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', LC_ALL: 'C' },
    signal: ends,
    killSignal: 'SIGKILL',
  });
  let output = '';
  const collect = (chunk: Buffer): void => {
    output = (output + chunk.toString()).slice(-MAX_OUTPUT_CHARACTERS);
  };
  child.stdout.on('data', collect);
  child.stderr.on('data', collect);
  // Rejects when the program cannot be started or the signal aborts.
  const [status] = (await once(child, 'close')) as [number | null];
  if (status === null || !okStatuses.includes(status)) throw new ToolFailed(tool, status, output.trim());
}
