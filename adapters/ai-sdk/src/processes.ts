import type { Experimental_SandboxProcess as SandboxProcess } from '@ai-sdk/provider-utils';
import { SvcError, type CommandOptions, type ExecResult, type Sandbox } from '@svc/sdk';

const SHELL = '/bin/sh';

interface Order {
  readonly command: string;
  readonly workingDirectory?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly abortSignal?: AbortSignal;
}

interface Result {
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** @throws SvcError `payload_too_large` for more output than a result holds; the abort reason */
export async function run(sandbox: Sandbox, order: Order): Promise<Result> {
  const { command, abortSignal } = order;
  const signal = abortSignal === undefined ? {} : { signal: abortSignal };
  const running = sandbox.exec(SHELL, ['-c', command], { ...optionsOf(order), ...signal });
  const result = await running.catch((error: unknown) => {
    abortSignal?.throwIfAborted();
    throw error;
  });
  requireWhole(result);
  return { exitCode: result.shellCode, stdout: result.text(), stderr: result.errorText() };
}

/** The process ends with its connection, and so with this program. */
export async function spawn(sandbox: Sandbox, order: Order): Promise<SandboxProcess> {
  const { command, abortSignal } = order;
  const signal = abortSignal === undefined ? {} : { signal: abortSignal };
  const process = await sandbox.commands.start(SHELL, ['-c', command], { ...optionsOf(order), ...signal });
  // Nothing is written to it, and a program that reads must not wait. A command that has ended meanwhile has closed its connection.
  await process.closeStdin().catch(() => undefined);
  const exit = process.wait().catch((error: unknown) => {
    abortSignal?.throwIfAborted();
    throw error;
  });
  // A caller may never wait.
  exit.catch(() => undefined);
  return {
    pid: process.pid,
    stdout: ReadableStream.from(process.stdout),
    stderr: ReadableStream.from(process.stderr),
    wait: async () => {
      const { shellCode } = await exit;
      abortSignal?.throwIfAborted();
      return { exitCode: shellCode };
    },
    // Fails only with the connection, whose end kills it too, or when it has ended before.
    kill: async () => await Promise.any([process.kill(), exit.then(() => undefined)]).catch(() => undefined),
  };
}

function optionsOf({ workingDirectory, env }: Order): CommandOptions {
  return {
    ...(workingDirectory === undefined ? {} : { cwd: workingDirectory }),
    ...(env === undefined ? {} : { env }),
  };
}

/** A result of the AI SDK has no place to say that it is not whole. */
function requireWhole({ truncated: [stream] }: ExecResult): void {
  if (stream === undefined) return;
  const message = `The command wrote more than 8 MiB to its ${stream}: send it to a file, or use spawn`;
  throw new SvcError('payload_too_large', message, { details: { field: stream } });
}
