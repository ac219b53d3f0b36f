import type { CommandResult, RunCommandOptions } from '@computesdk/provider';
import { SvcError, type ExecResult, type Sandbox } from '@svc/sdk';

const SHELL = '/bin/sh';

/**
 * A command line, run by the shell of the image. In the background it runs on, and only its start is waited for.
 * @throws SvcError `exec_timeout`; `payload_too_large` when there is more output than a result holds
 */
export async function runCommand(
  sandbox: Sandbox,
  command: string,
  { cwd, env, timeout, background, onStdout, onStderr }: RunCommandOptions = {},
): Promise<CommandResult> {
  const startedAt = performance.now();
  const place = { ...(cwd === undefined ? {} : { cwd }), ...(env === undefined ? {} : { env }) };
  if (background === true) {
    const limit = timeout === undefined ? {} : { maxRunSeconds: Math.ceil(timeout / 1000) };
    await sandbox.commands.startDetached(SHELL, ['-c', command], { ...place, ...limit });
    return { stdout: '', stderr: '', exitCode: 0, durationMs: performance.now() - startedAt };
  }
  const result = await sandbox.exec(SHELL, ['-c', command], {
    ...place,
    ...(timeout === undefined ? {} : { timeoutMs: timeout }),
    ...(onStdout === undefined ? {} : { onStdout }),
    ...(onStderr === undefined ? {} : { onStderr }),
  });
  if (onStdout === undefined && onStderr === undefined) requireWhole(result);
  return {
    stdout: result.text(),
    stderr: result.errorText(),
    exitCode: result.shellCode,
    durationMs: performance.now() - startedAt,
  };
}

/** A result of ComputeSDK has no place to say that it is not whole. */
function requireWhole({ truncated: [stream] }: ExecResult): void {
  if (stream === undefined) return;
  const message = `The command wrote more than 8 MiB to its ${stream}: send it to a file, or take it with onStdout and onStderr`;
  throw new SvcError('payload_too_large', message, { details: { field: stream } });
}
