import { ChannelError, type ExecRequest } from '@svc/contract/channel';
import { ContentSource, type Content } from '../client/byte-content.ts';
import { callOptionsOf, CALL_OPTIONS, type CallOptions } from '../client/call-budget.ts';
import type { Client } from '../client/client.ts';
import { requireKnownOptions, type OptionNames } from '../client/known-options.ts';
import { SvcError } from '../svc-error.ts';
import { toSvcError } from '../client/to-svc-error.ts';
import { utf8Decoder } from '../client/utf8.ts';
import { Command } from './command.ts';
import { DetachedProcess, type DetachedOptions } from './detached-process.ts';
import { COMMAND_OPTIONS, givenCommandOptions, type CommandOptions } from './command-options.ts';
import { ExecResult } from './exec-result.ts';
import { OutputListeners } from './output-listeners.ts';
import type { SharedChannel } from './shared-channel.ts';

const decoder = utf8Decoder();

export interface RunOptions extends CommandOptions, CallOptions {
  /** The stdin of the process; empty unless given. Errors of the content are thrown unchanged. */
  readonly stdin?: Content;
  /** The process is killed after this long, and the call throws `exec_timeout`. No limit unless given. */
  readonly timeoutMs?: number;
  /** Limit for each stream; the rest is dropped and noted in `truncated`. 8 MiB unless given. */
  readonly maxOutputBytes?: number;
  /** Called with output as it is printed, also beyond `maxOutputBytes`. An error of a listener ends the process and is thrown unchanged. */
  readonly onStdout?: (text: string) => void;
  readonly onStderr?: (text: string) => void;
}

const RUN_OPTIONS: OptionNames<RunOptions> = {
  ...CALL_OPTIONS,
  ...COMMAND_OPTIONS,
  stdin: true,
  maxOutputBytes: true,
  onStdout: true,
  onStderr: true,
};

export interface StartOptions extends CommandOptions, CallOptions {
  /** Time limit of the start only: the process may run without limit. */
  readonly timeoutMs?: number;
  /** `ignore` throws the output away. `pipe` unless given. */
  readonly stdout?: 'pipe' | 'ignore';
  readonly stderr?: 'pipe' | 'ignore';
}

/** Processes of a sandbox. Programs are looked up on PATH; no shell is involved. */
export class Commands {
  readonly #channel: SharedChannel;

  readonly #client: Client;
  readonly #sandboxId: string;

  constructor(client: Client, sandboxId: string, channel: SharedChannel) {
    this.#client = client;
    this.#sandboxId = sandboxId;
    this.#channel = channel;
  }

  /**
   * Runs a program to its end. An exit code other than 0 does not throw.
   * @throws SvcError `exec_failed` when it cannot be started, `exec_timeout` when it took too long; when the sandbox ended
   *   meanwhile, with the output so far in `details.output` and `details.error`
   */
  async run(program: string, args: readonly string[] = [], options: RunOptions = {}): Promise<ExecResult> {
    requireKnownOptions(options, RUN_OPTIONS);
    const { timeoutMs, maxOutputBytes, stdin, ...rest } = options;
    const listeners = new OutputListeners(options);
    const source = stdin === undefined ? undefined : new ContentSource(stdin);
    const limits = {
      ...(timeoutMs === undefined ? {} : { timeoutMs }),
      ...(maxOutputBytes === undefined ? {} : { maxOutputBytes }),
      ...(source === undefined ? {} : { input: source.bytes }),
      ...(listeners.isEmpty ? {} : { onOutput: listeners.hear }),
    };
    const caller = options.signal === undefined ? {} : { signal: options.signal };
    const result = await this.#channel
      .use(caller, async (channel, signal) => {
        try {
          return await channel.run(toRequest(program, args, rest), { ...limits, signal });
        } catch (error) {
          // It did not start within its time limit; if it still does, it is killed.
          if (error instanceof ChannelError && error.kind === 'timeout') throw tooSlow(program, timeoutMs);
          throw withOutput(error);
        }
      })
      .catch((error: unknown) =>
        Promise.reject(source?.failure ?? listeners.failure ?? explainMissing(error, program, args)),
      );
    const { reason } = result;
    if (reason === 'timeout') throw tooSlow(program, timeoutMs);
    return new ExecResult({ ...result, reason });
  }

  /** Starts a program for interactive use. @throws SvcError `exec_failed` when it cannot be started */
  async start(program: string, args: readonly string[] = [], options: StartOptions = {}): Promise<Command> {
    const call = callOptionsOf(options, { ...COMMAND_OPTIONS, stdout: true, stderr: true });
    const command = await this.open(toRequest(program, args, options), call);
    if (options.stdout === 'ignore') command.stdout.discard();
    if (options.stderr === 'ignore') command.stderr.discard();
    return command;
  }

  /**
   * Starts a program that runs on when this one ends; `connect` finds it again, from anywhere.
   * @throws SvcError `exec_failed`, `name_already_exists` when one of this name runs
   */
  async startDetached(
    program: string,
    args: readonly string[] = [],
    options: DetachedOptions = {},
  ): Promise<DetachedProcess> {
    return await DetachedProcess.start(this.#client, this.#sandboxId, { program, args, options });
  }

  /** A detached process, by its id or its name. @throws SvcError `process_not_found` */
  async connect(idOrName: string, options: CallOptions = {}): Promise<DetachedProcess> {
    return await DetachedProcess.connect(this.#client, this.#sandboxId, idOrName, options);
  }

  /** Detached processes, newest first; also those that ended. */
  list(
    options: CallOptions & { readonly status?: 'running' | 'exited' } = {},
  ): AsyncGenerator<DetachedProcess, void> {
    return DetachedProcess.list(this.#client, this.#sandboxId, options);
  }

  /** For terminals. The signal ends the process also after it has started. */
  async open(request: ExecRequest, options: CallOptions): Promise<Command> {
    // A slow reader would stall every other call on a shared connection.
    const channel = await this.#channel.openOwn(options);
    try {
      const call = options.signal === undefined ? {} : { signal: options.signal };
      return new Command(channel, await channel.exec(request, call));
    } catch (error) {
      channel.close();
      if (options.signal?.aborted === true) {
        throw new SvcError('aborted', 'The call was aborted by its caller', { cause: error });
      }
      throw explainMissing(toSvcError(error), request.cmd, request.args ?? []);
    }
  }
}

/** The most likely reason for a missing program is a whole command line in place of its name. */
function explainMissing(error: unknown, program: string, args: readonly string[]): unknown {
  const isCommandLine = args.length === 0 && /\s/.test(program.trim());
  if (!isCommandLine || !SvcError.is(error, 'exec_failed')) return error;
  const [name = '', ...words] = program.trim().split(/\s+/);
  const split = `exec('${name}', [${words.map((word) => `'${word}'`).join(', ')}])`;
  const message = `${error.message}; '${program}' is taken as the name of one program: use shell('${program}'), or ${split}`;
  return new SvcError('exec_failed', message, { details: error.details, cause: error });
}

/** The output of a program whose connection ended. */
function withOutput(error: unknown): unknown {
  if (!(error instanceof ChannelError) || error.output === null) return error;
  const { code, message, details, cause } = toSvcError(error);
  const { stdout, stderr } = error.output;
  const said = { output: decoder.decode(stdout), error: decoder.decode(stderr) };
  return new SvcError(code, message, { details: { ...details, ...said }, cause });
}

function tooSlow(program: string, timeoutMs: number | undefined): SvcError {
  const message = `${program} took longer than the ${timeoutMs} ms that it was given, and was killed`;
  return new SvcError('exec_timeout', message, { details: { timeout_ms: timeoutMs } });
}

function toRequest(cmd: string, args: readonly string[], options: CommandOptions): ExecRequest {
  return { cmd, args, ...givenCommandOptions(options) };
}
