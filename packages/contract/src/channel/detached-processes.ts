import type { Message, Payload } from '../frames/frame.ts';
import { abortable } from '../async/abort.ts';
import { encodeRequest, readFailure, type ExecRequest } from './channel-process.ts';
import type { Connection, Session } from './connection.ts';
import { DetachedOutput, type DetachedEvent } from './detached-output.ts';
import { readDetachedStates, type DetachedState } from './detached-state.ts';
import { readUint } from './payload-fields.ts';
import { SingleAnswer } from './single-answer.ts';
import type { ChannelError } from './channel-error.ts';

const STDIN_CHUNK_BYTES = 256 * 1024;

export interface DetachedRequest extends ExecRequest {
  /** The key of the process; 1–256 bytes, unique in the sandbox. */
  readonly key: string;
  /** False: its stdin is empty. */
  readonly stdin?: boolean;
  readonly timeoutMs?: number | null;
  /** How much of each stream is kept for readers that come later. */
  readonly ringBytes?: number;
  /** The process is killed when it writes more than this, both streams together. */
  readonly outputMax?: number | null;
  /** Where the process finds its input; its stdin is empty then. */
  readonly stdinFd?: number;
  /** When a process was started under this key already, it is returned and none is started. */
  readonly isRepeat?: boolean;
  /** Started ahead of a request: no activity until it is written to; ends when the settings of new processes change. */
  readonly isSpare?: boolean;
}

/** Identifies a write that may be repeated: bytes that the sandbox has accepted already are not written again. */
export interface NamedWrite {
  /** 1–64 bytes, unique among the latest 32 writes to the process. */
  readonly name: string;
  /** Where in the write the data begins. */
  readonly offset: number;
}

export interface ReadDetached {
  /** Offset to begin with; a stream without one is not read. */
  readonly stdout?: number;
  readonly stderr?: number;
  /** Go on until the process ends. Without it, what is there now is sent. */
  readonly follow: boolean;
}

/**
 * Processes that outlive the connection they were started over. Only svc-init knows them; other agents refuse.
 * - An unknown key is ChannelError `refused` with the refusal `invalid_session`.
 * - While a read is under way the process waits for its reader, as does everything else on the connection: use a separate
 *   connection for a slow reader. After 10 s in which the reader took nothing the process goes on, and the reader is told
 *   what it missed.
 */
export class DetachedProcesses {
  readonly #connection: Connection;

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  /** @throws ExecFailed when it cannot start */
  async start(
    request: DetachedRequest,
    signal?: AbortSignal,
  ): Promise<{ readonly pid: number; readonly startedAtMs: number }> {
    const session = new Start();
    const { payload } = await this.#ask('svc.detached.start', encodeDetached(request), session, signal);
    return {
      pid: readUint(payload, 'pid'),
      startedAtMs: Math.floor(readUint(payload, 'started_at_ns') / 1e6),
    };
  }

  async list(signal?: AbortSignal): Promise<readonly DetachedState[]> {
    const session = new SingleAnswer('svc.detached.listed');
    return readDetachedStates((await this.#ask('svc.detached.list', {}, session, signal)).payload);
  }

  /** Ends with an `end`, or throws. To leave before that, close the connection. */
  async *read(key: string, options: ReadDetached): AsyncGenerator<DetachedEvent, void> {
    const { stdout = null, stderr = null, follow } = options;
    const output = new DetachedOutput();
    const id = this.#connection.start(output);
    await this.#connection.send(id, 'svc.detached.read', { key, stdout, stderr, follow });
    yield* output.read();
  }

  /** Resolves when the process has taken all of it. Writes come one after the other, not side by side. */
  async writeStdin(key: string, data: Uint8Array, signal?: AbortSignal, write?: NamedWrite): Promise<void> {
    for (let at = 0; at < data.length; at += STDIN_CHUNK_BYTES) {
      const chunk = data.subarray(at, at + STDIN_CHUNK_BYTES);
      await this.#do('svc.detached.stdin', { key, data: chunk, ...encodeWrite(write, at) }, signal);
    }
  }

  /** All of it arrives, or nothing. @throws RangeError when it is larger than a frame */
  async writeWhole(key: string, data: Uint8Array, name: string, signal?: AbortSignal): Promise<void> {
    await this.#do('svc.detached.stdin', { key, data, write: name, offset: 0 }, signal);
  }

  async closeStdin(key: string, signal?: AbortSignal, write?: NamedWrite): Promise<void> {
    await this.#do('svc.detached.stdin', { key, data: new Uint8Array(), ...encodeWrite(write, 0) }, signal);
  }

  /** Whether the process, which may have ended, has received this write. */
  async hasWrite(key: string, name: string, signal?: AbortSignal): Promise<boolean> {
    const session = new SingleAnswer('svc.detached.recalled');
    const { payload } = await this.#ask('svc.detached.recall', { key, write: name }, session, signal);
    return typeof payload['bytes'] === 'number';
  }

  /** Kills it when this much time has passed from now; null: no limit. */
  async setTimeout(key: string, timeoutMs: number | null, signal?: AbortSignal): Promise<void> {
    await this.#do('svc.detached.timeout', { key, timeout_ms: timeoutMs ?? 0 }, signal);
  }

  /** Signals the whole process group. `by` is reported as the sender when the process dies of it. */
  async signal(key: string, number: number, by: string | null, signal?: AbortSignal): Promise<void> {
    await this.#do('svc.detached.signal', { key, signal: number, by }, signal);
  }

  async resize(key: string, rows: number, cols: number, signal?: AbortSignal): Promise<void> {
    await this.#do('svc.detached.resize', { key, rows, cols }, signal);
  }

  /** Kills what still runs, and resolves when nothing is left of it. */
  async forget(key: string, signal?: AbortSignal): Promise<void> {
    await this.#do('svc.detached.forget', { key }, signal);
  }

  async #do(type: string, payload: Payload, signal: AbortSignal | undefined): Promise<void> {
    await this.#ask(type, payload, new SingleAnswer('svc.detached.done'), signal);
  }

  async #ask(
    type: string,
    payload: Payload,
    session: Session & { readonly answer: Promise<Message> },
    signal: AbortSignal | undefined,
  ): Promise<Message> {
    signal?.throwIfAborted();
    const id = this.#connection.start(session);
    try {
      await abortable(this.#connection.send(id, type, payload), signal);
      return await abortable(session.answer, signal);
    } finally {
      this.#connection.abandon(id);
    }
  }
}

/** A start is answered by one message too, but a failure of it is a failure to execute. */
class Start implements Session {
  readonly #answer = new SingleAnswer('svc.detached.started');
  readonly #failure = Promise.withResolvers<never>();
  readonly answer = Promise.race([this.#answer.answer, this.#failure.promise]);

  constructor() {
    // The connection may end before anyone waits.
    this.answer.catch(() => undefined);
  }

  receive(message: Message): undefined {
    if (message.type === 'svc.detached.failed') this.#failure.reject(readFailure(message));
    else this.#answer.receive(message);
  }

  lost(error: ChannelError): void {
    this.#answer.lost(error);
  }
}

function encodeDetached(request: DetachedRequest): Payload {
  return {
    ...encodeRequest(request),
    key: request.key,
    stdin: request.stdin ?? false,
    timeout_ms: request.timeoutMs ?? null,
    ring_bytes: request.ringBytes ?? null,
    output_max: request.outputMax ?? null,
    stdin_fd: request.stdinFd ?? null,
    repeat: request.isRepeat ?? false,
    spare: request.isSpare ?? false,
  };
}

function encodeWrite(write: NamedWrite | undefined, at: number): Payload {
  return write === undefined ? {} : { write: write.name, offset: write.offset + at };
}
