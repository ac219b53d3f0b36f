import { ChannelError, ExecFailed, PlatformError, timeoutMsOf, type RunResult } from '@svc/contract';
import type { ChannelPool } from '../../orchestrator/channel-pool.ts';
import type { Handlers } from '../../dispatch/dispatch.ts';
import type { Database } from '../../store/database.ts';
import { requireRunning, whileRunning } from '../sandboxes/running-sandbox.ts';

const MAX_OUTPUT_BYTES = 10 * 1024 * 1024;
const OOM_NOTE =
  '[The program was killed because the sandbox ran out of memory; start the sandbox with a larger config.memory]\n';
const DURATION_NOTE =
  '[The program was ended because its sandbox had run for as long as it may: lifecycle.max_duration_secs]\n';
const TRUNCATION_MARK = '\n[output cut here: it exceeds 10 MiB]\n';
/** What shells report for a program that a signal ended. */
const SIGNAL_EXIT_BASE = 128;
const SIGKILL = 9;

export function commandHandlers(
  database: Database,
  channels: ChannelPool,
): Pick<Handlers, 'sandbox.command.run'> {
  return {
    'sandbox.command.run': async ({ sandbox, command, args, timeout }, { namespace, signal }) => {
      const { id } = await requireRunning(database, namespace, sandbox);
      const words = args ?? [];
      const timeoutMs = timeoutMsOf(timeout);
      const result = await whileRunning(sandbox, () => run(channels, id, command, words, timeoutMs, signal));
      const { output, error: stderr, truncated } = toText(result);
      const error = withReason(stderr, result);
      if (result.reason === 'timeout') throw tooSlow(command, timeoutMs, { output, error, ...truncated });
      const exitCode = exitCodeOf(result);
      return {
        command,
        args: words,
        exit_code: exitCode,
        success: exitCode === 0,
        output,
        error,
        ...truncated,
      };
    },
  };
}

async function run(
  channels: ChannelPool,
  sandboxId: string,
  cmd: string,
  args: readonly string[],
  timeoutMs: number,
  signal: AbortSignal,
): Promise<RunResult> {
  const channel = await channels.get(sandboxId);
  try {
    return await channel.run({ cmd, args }, { timeoutMs, maxOutputBytes: MAX_OUTPUT_BYTES, signal });
  } catch (error) {
    if (error instanceof ExecFailed) throw explainExecFailure(cmd, error);
    // It had not even started, on a host that was busy.
    if (error instanceof ChannelError && error.kind === 'timeout')
      throw tooSlow(cmd, timeoutMs, { output: '', error: '' });
    if (error instanceof ChannelError) throw await explainLoss(channels, sandboxId, error);
    throw error;
  }
}

function tooSlow(command: string, timeoutMs: number, said: object): PlatformError {
  const seconds = timeoutMs / 1000;
  return new PlatformError('exec_timeout', `${command} did not end within ${seconds} s`, {
    details: { timeout: seconds, ...said },
  });
}

function explainExecFailure(command: string, error: ExecFailed): PlatformError {
  let message = `'${command}' could not be started: ${error.message}`;
  if (error.kind === 'not_found')
    message = `'${command}' not found in the sandbox; give a path or a program that is on its PATH`;
  if (error.kind === 'bad_cwd')
    message = `'${command}' could not be started in the working directory of the sandbox: ${error.message}; start it with another config.workdir`;
  return new PlatformError('exec_failed', message, {
    details: { reason: error.kind, errno: error.errnoName },
    cause: error,
  });
}

async function explainLoss(channels: ChannelPool, sandboxId: string, error: ChannelError): Promise<unknown> {
  const reason = await channels.explainBreak(sandboxId);
  if (reason !== undefined) return reason;
  const message = 'the connection to the sandbox broke; whether the command ran to its end is unknown';
  return new PlatformError('unavailable', message, { cause: error });
}

function toText(result: RunResult): {
  readonly output: string;
  readonly error: string;
  readonly truncated: { truncated?: true };
} {
  const text = (bytes: Uint8Array, stream: 'stdout' | 'stderr') =>
    Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8') +
    (result.truncated.includes(stream) ? TRUNCATION_MARK : '');
  return {
    output: text(result.stdout, 'stdout'),
    error: text(result.stderr, 'stderr'),
    truncated: result.truncated.length > 0 ? { truncated: true } : {},
  };
}

function withReason(stderr: string, { reason }: RunResult): string {
  if (reason === 'oom') return `${endLine(stderr)}${OOM_NOTE}`;
  return reason === 'max_duration' ? `${endLine(stderr)}${DURATION_NOTE}` : stderr;
}

function endLine(text: string): string {
  return text === '' || text.endsWith('\n') ? text : `${text}\n`;
}

function exitCodeOf({ code, signal, reason }: RunResult): number {
  if (reason === 'exit') return code;
  return SIGNAL_EXIT_BASE + (signal ?? SIGKILL);
}
