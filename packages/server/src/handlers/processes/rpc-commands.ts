import {
  ChannelError,
  ExecFailed,
  PlatformError,
  shellCodeOf,
  timeoutMsOf,
  type ExecRequest,
  type OperationInput,
  type RunOutput,
  type RunResult,
} from '@svc/contract';
import type { ChannelPool } from '../../orchestrator/channel-pool.ts';
import type { Handlers } from '../../dispatch/dispatch.ts';
import type { Database } from '../../store/database.ts';
import { notFoundMessage } from '../../processes/explain-failure.ts';
import { toVariables } from '../../processes/variables.ts';
import { requireRunning, whileRunning } from '../sandboxes/running-sandbox.ts';

const MAX_OUTPUT_BYTES = 10 * 1024 * 1024;
const OOM_NOTE =
  '[The program was killed because the sandbox ran out of memory; start the sandbox with a larger config.memory]\n';
const DURATION_NOTE =
  '[The program was ended because its sandbox had run for as long as it may: lifecycle.max_duration_secs]\n';
const TRUNCATION_MARK = '\n[output cut here: it exceeds 10 MiB]\n';

export function commandHandlers(
  database: Database,
  channels: ChannelPool,
): Pick<Handlers, 'sandbox.command.run'> {
  return {
    'sandbox.command.run': async (input, { namespace, signal }) => {
      const { sandbox, command, args, timeout, envs, workdir } = input;
      const env = toVariables(envs ?? []);
      const request = { cmd: command, args: args ?? [], env, cwd: workdir ?? null };
      const { id } = await requireRunning(database, namespace, sandbox);
      const result = await whileRunning(sandbox, () => run(channels, id, request, input, signal));
      const { output, error: stderr, truncated } = toText(result);
      const error = withReason(stderr, result);
      if (result.reason === 'timeout') throw tooSlow(command, timeout, { output, error, ...truncated });
      const exitCode = shellCodeOf(result);
      return {
        command,
        args: args ?? [],
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
  request: ExecRequest,
  input: OperationInput<'sandbox.command.run'>,
  signal: AbortSignal,
): Promise<RunResult> {
  const { command: cmd, workdir, stdin, timeout } = input;
  const bounds = { timeoutMs: timeoutMsOf(timeout), maxOutputBytes: MAX_OUTPUT_BYTES, signal };
  const channel = await channels.get(sandboxId);
  try {
    return await channel.run(
      request,
      typeof stdin === 'string' ? { ...bounds, input: Buffer.from(stdin) } : bounds,
    );
  } catch (error) {
    if (error instanceof ExecFailed) throw explainExecFailure(cmd, workdir, error);
    // It had not even started, on a busy host.
    if (error instanceof ChannelError && error.kind === 'timeout')
      throw tooSlow(cmd, timeout, { output: '', error: '' });
    if (error instanceof ChannelError) throw await explainLoss(channels, sandboxId, error);
    throw error;
  }
}

function tooSlow(command: string, timeout: number | null | undefined, said: object): PlatformError {
  const seconds = timeoutMsOf(timeout) / 1000;
  return new PlatformError('exec_timeout', `${command} did not end within ${seconds} s`, {
    details: { timeout: seconds, ...said },
  });
}

function explainExecFailure(
  command: string,
  workdir: string | null | undefined,
  error: ExecFailed,
): PlatformError {
  let message = `'${command}' could not be started: ${error.message}`;
  if (error.kind === 'not_found') message = notFoundMessage(command);
  if (error.kind === 'bad_cwd') {
    const [where, remedy] =
      typeof workdir === 'string'
        ? [workdir, 'give another workdir']
        : ['the working directory of the sandbox', 'start it with another config.workdir'];
    message = `'${command}' could not be started in ${where}: ${error.message}; ${remedy}`;
  }
  return new PlatformError('exec_failed', message, {
    details: { reason: error.kind, errno: error.errnoName },
    cause: error,
  });
}

/** With the output so far, if the command had begun. */
async function explainLoss(channels: ChannelPool, sandboxId: string, error: ChannelError): Promise<unknown> {
  const reason = await channels.explainBreak(sandboxId);
  const said = error.output === null ? {} : saidIn(error.output);
  if (PlatformError.is(reason))
    return new PlatformError(reason.code, reason.message, {
      details: { ...reason.details, ...said },
      cause: reason,
    });
  if (reason !== undefined) return reason;
  const message = 'the connection to the sandbox broke; whether the command ran to its end is unknown';
  return new PlatformError('unavailable', message, { details: said, cause: error });
}

function saidIn(result: RunOutput): Record<string, unknown> {
  const { truncated, ...texts } = toText(result);
  return { ...texts, ...truncated };
}

function toText(result: RunOutput): {
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
