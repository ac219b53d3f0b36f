import type { Message } from '../frames/frame.ts';
import { abortable, onAbort } from '../async/abort.ts';
import { ByteQueue } from './byte-queue.ts';
import type { ByteStream } from './byte-queue.ts';
import { ChannelError, ExecFailed } from './channel-error.ts';
import type { Connection, Session } from './connection.ts';
import {
  readBytes,
  readInteger,
  readMessage,
  readOptionalInteger,
  readOptionalMessage,
  readUint,
} from './payload-fields.ts';
import { refusal } from './single-answer.ts';

/** Unread output that is held per stream before the whole connection waits for the reader. */
const OUTPUT_LIMIT_BYTES = 1024 * 1024;
/** Larger input is split, so that no frame delays signals for long. */
const STDIN_CHUNK_BYTES = 256 * 1024;
const SIGKILL = 9;
const END_OF_INPUT = ['core.exec.stdin', { data: new Uint8Array(0) }] as const;
const PROCESS_IS_OVER = new Error('the process is over');

export interface ExecRequest {
  /** Looked up on PATH; no shell is involved. */
  readonly cmd: string;
  readonly args?: readonly string[];
  /** Over the sandbox's own environment. */
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string | null;
  /** `name`, `uid`, `name:group` or `uid:gid`. */
  readonly user?: string | null;
  readonly tty?: boolean;
  readonly rows?: number;
  readonly cols?: number;
  readonly rlimits?: readonly { readonly resource: string; readonly soft: number; readonly hard: number }[];
}

const EXIT_REASONS = ['exit', 'signal', 'oom', 'max_duration'] as const;

export interface ProcessExit {
  /** -1 when a signal ended the process. */
  readonly code: number;
  readonly signal: number | null;
  /** `max_duration`: it ended with its sandbox, which had reached its maximum duration. */
  readonly reason: (typeof EXIT_REASONS)[number];
}

/**
 * A process in the sandbox that lives as long as its connection.
 * - Read `stdout` and `stderr`, or discard them: when one holds 1 MiB unread, the whole connection waits for its reader,
 *   and with it every other call on the same connection. (A terminal has all its output in `stdout`.)
 * - When the signal given at the start aborts, the process group is killed, and `exited` rejects without waiting for that.
 */
export interface ChannelProcess {
  readonly pid: number;
  readonly stdout: ByteStream;
  readonly stderr: ByteStream;
  /** Rejects when the connection ends first. All output has been delivered before it resolves. */
  readonly exited: Promise<ProcessExit>;
  /**
   * Resolves when the connection can take more. Rejects with ChannelError `refused` once the sandbox said that the process
   * reads no more; does nothing after the process has exited.
   */
  writeStdin(data: Uint8Array): Promise<void>;
  closeStdin(): Promise<void>;
  /** To the whole process group. */
  signal(number: number): Promise<void>;
  /** SIGKILL; with `isWholeTree` also to what it started in groups and sessions of their own. */
  kill(isWholeTree?: boolean): Promise<void>;
  resize(rows: number, cols: number): Promise<void>;
}

/**
 * Resolves when the process has started. With `isInputOver` its stdin is at its end from the beginning.
 * @throws ExecFailed when it cannot.
 */
export async function startProcess(
  connection: Connection,
  request: ExecRequest,
  signal: AbortSignal | undefined,
  isInputOver = false,
): Promise<ChannelProcess> {
  signal?.throwIfAborted();
  const process = new ProcessSession(connection);
  const stop = onAbort(signal, (reason) => process.giveUp(reason));
  process.exited.then(stop, stop);
  const behind = isInputOver ? END_OF_INPUT : undefined;
  await abortable(connection.send(process.id, 'core.exec.request', encodeRequest(request), behind), signal);
  await abortable(process.started, signal);
  return process;
}

export function encodeRequest(request: ExecRequest): Record<string, unknown> {
  return {
    cmd: request.cmd,
    args: request.args ?? [],
    env: Object.entries(request.env ?? {}).map(([key, value]) => `${key}=${value}`),
    cwd: request.cwd ?? null,
    user: request.user ?? null,
    tty: request.tty ?? false,
    rows: request.rows ?? 24,
    cols: request.cols ?? 80,
    rlimits: request.rlimits ?? [],
  };
}

class ProcessSession implements Session, ChannelProcess {
  readonly id: number;
  readonly stdout = new ByteQueue(OUTPUT_LIMIT_BYTES);
  readonly stderr = new ByteQueue(OUTPUT_LIMIT_BYTES);
  readonly #connection: Connection;
  readonly #started = Promise.withResolvers<void>();
  readonly #exited = Promise.withResolvers<ProcessExit>();
  readonly #over = new AbortController();
  #pid = 0;
  #hasStarted = false;
  #stdinError: ChannelError | undefined;

  constructor(connection: Connection) {
    this.#connection = connection;
    // Callers may ignore either promise: that must not be an unhandled rejection.
    this.#started.promise.catch(() => undefined);
    this.#exited.promise.catch(() => undefined);
    this.id = connection.start(this);
  }

  get pid(): number {
    return this.#pid;
  }

  get started(): Promise<void> {
    return this.#started.promise;
  }

  get exited(): Promise<ProcessExit> {
    return this.#exited.promise;
  }

  async writeStdin(data: Uint8Array): Promise<void> {
    for (let start = 0; start < data.length; start += STDIN_CHUNK_BYTES) {
      if (this.#stdinError) throw this.#stdinError;
      await this.#send('core.exec.stdin', { data: data.subarray(start, start + STDIN_CHUNK_BYTES) });
    }
  }

  closeStdin(): Promise<void> {
    return this.#send(...END_OF_INPUT);
  }

  signal(number: number): Promise<void> {
    return this.#send('core.exec.signal', { signal: number });
  }

  kill(isWholeTree = false): Promise<void> {
    return this.#send('core.exec.signal', { signal: SIGKILL, ...(isWholeTree ? { tree: true } : {}) });
  }

  resize(rows: number, cols: number): Promise<void> {
    return this.#send('core.exec.resize', { rows, cols });
  }

  /** Kills without waiting for the outcome. */
  giveUp(reason: Error): void {
    if (this.#over.signal.aborted) return;
    this.#connection.post(this.id, 'core.exec.signal', { signal: SIGKILL });
    this.#connection.abandon(this.id);
    this.#finish(reason);
  }

  receive(message: Message): Promise<void> | undefined {
    switch (message.type) {
      case 'core.exec.stdout':
        return this.stdout.push(readBytes(message.payload, 'data'));
      case 'core.exec.stderr':
        return this.stderr.push(readBytes(message.payload, 'data'));
      case 'core.exec.started':
        this.#pid = readUint(message.payload, 'pid');
        this.#hasStarted = true;
        this.#started.resolve();
        return undefined;
      case 'core.exec.stdin.error':
        this.#stdinError = new ChannelError('refused', `stdin: ${readMessage(message.payload, 'message')}`);
        return undefined;
      case 'core.exec.exited':
        this.#exited.resolve(readExit(message));
        this.#finish(undefined);
        return undefined;
      case 'core.exec.failed':
        this.#finish(readFailure(message));
        return undefined;
      case 'core.error':
        this.#finish(refusal(message));
        return undefined;
      default:
        return undefined;
    }
  }

  lost(error: ChannelError): void {
    this.#finish(error);
  }

  /** Stops waiting when the process ends, since the input has no reader any more. */
  async #send(type: string, payload: Record<string, unknown>): Promise<void> {
    if (this.#over.signal.aborted) return;
    try {
      await abortable(this.#connection.send(this.id, type, payload), this.#over.signal);
    } catch (error) {
      if (error !== PROCESS_IS_OVER) throw error;
    }
  }

  #finish(error: Error | undefined): void {
    if (this.#over.signal.aborted) return;
    this.#over.abort(PROCESS_IS_OVER);
    // An error costs its stack, so none is made for a process that ran as it should.
    if (error !== undefined || !this.#hasStarted) {
      const outcome = error ?? new ChannelError('protocol', 'The process exited before it started');
      this.#started.reject(outcome);
      this.#exited.reject(outcome);
    }
    this.stdout.end(error);
    this.stderr.end(error);
  }
}

function readExit({ payload }: Message): ProcessExit {
  const code = readInteger(payload, 'code');
  const reason = readOptionalMessage(payload, 'reason');
  // Agents other than ours send the code only.
  const fallback = code === -1 ? 'signal' : 'exit';
  return {
    code,
    signal: readOptionalInteger(payload, 'signal'),
    reason: EXIT_REASONS.find((known) => known === reason) ?? fallback,
  };
}

export function readFailure({ payload }: Message): ExecFailed {
  return new ExecFailed(
    readMessage(payload, 'kind'),
    readMessage(payload, 'message') || 'The process could not be started',
    readOptionalMessage(payload, 'errno_name'),
    readOptionalMessage(payload, 'stage'),
  );
}
