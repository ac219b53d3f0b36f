import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';

/**
 * The standard streams of a runtime's command. PID 1 of the sandbox inherits them: `null` is the host's null device, `closed` are
 * pipes whose other end is closed when the command has ended.
 */
export type Streams = 'null' | 'closed';

/**
 * Starts a command that outlives this process: in a session of its own, so that signals to ours pass it by, and with nothing of ours
 * open but its streams.
 * Resolves with its exit code (128 when a signal ended it). Rejects when the program cannot be executed, and when `signal` aborts,
 * after the command and its process group were killed.
 */
export async function launch(
  command: readonly string[],
  streams: Streams,
  signal: AbortSignal,
): Promise<number> {
  signal.throwIfAborted();
  const [program = '', ...args] = command;
  // SAFETY: no shell; every argument is made by the engine. The folder is / so that none of ours leaks as working directory.
  const stdio = streams === 'null' ? 'ignore' : 'pipe';
  const child = spawn(program, args, { detached: true, stdio, cwd: '/', env: RUNTIME_ENVIRONMENT });
  return ended(child, signal);
}

/** All that a runtime's program sees of our environment. Set-up puts programs that the distribution lacks into /opt/svc/bin. */
export const RUNTIME_ENVIRONMENT = {
  PATH: '/opt/svc/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
};

function ended(child: ChildProcess, signal: AbortSignal): Promise<number> {
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  // SAFETY: the child leads its own process group and has not been waited for, so the id is still its own.
  const abort = () => void (child.pid !== undefined && process.kill(-child.pid, 'SIGKILL'));
  signal.addEventListener('abort', abort, { once: true });
  child.once('error', (error) => {
    signal.removeEventListener('abort', abort);
    reject(error);
  });
  // Not `close`: PID 1 may keep the streams open for as long as it lives.
  child.once('exit', (code) => {
    signal.removeEventListener('abort', abort);
    for (const stream of child.stdio) stream?.destroy();
    if (signal.aborted) reject(signal.reason as Error);
    else resolve(code ?? 128);
  });
  return promise;
}
