import { FrameError } from '../frames/frame-error.ts';
import { FrameSplitter } from '../frames/frame-splitter.ts';
import { decodeMessage, encodeMessage, readFrameHead, type Message, type Payload } from '../frames/frame.ts';
import { isTerminal } from '../frames/message-types.ts';
import { GENERATION } from '../frames/envelope.ts';
import { onAbort } from '../async/abort.ts';
import { ChannelError } from './channel-error.ts';
import { own, readOptionalMessage, readUint } from './payload-fields.ts';
import type { ByteTransport } from './transport.ts';

/** The range that opens a connection: two words of 32 bits. */
const RANGE_BYTES = 8;

/** One conversation on a connection: all frames of one id. */
export interface Session {
  /** A returned promise delays all messages behind this one until it settles. */
  receive(message: Message): Promise<void> | undefined;
  /** No more messages will come. Also called after the last one, and perhaps more than once. */
  lost(error: ChannelError): void;
}

/** What the agent says about itself when a connection opens. */
export interface AgentInfo {
  /** The generation both sides speak. */
  readonly generation: number;
  readonly version: string | null;
  /** Groups of messages that it knows beyond the generation, `svc.watch` for instance. */
  readonly features: readonly string[];
  readonly bootTimeNs: number;
  readonly initTimeNs: number;
  readonly readyTimeNs: number;
}

/**
 * Reads the frames of one transport and hands each to the session of its id.
 * The peer is not trusted: frames for unknown ids are dropped undecoded, bytes that are no frame end the connection.
 */
export class Connection {
  readonly #transport: ByteTransport;
  readonly #splitter = new FrameSplitter();
  readonly #sessions = new Map<number, Session>();
  readonly #ready = Promise.withResolvers<AgentInfo>();
  readonly #closed = Promise.withResolvers<ChannelError>();
  readonly #rangeBytes = new Uint8Array(RANGE_BYTES);
  #rangeFilled = 0;
  #range: IdRange | undefined;
  #failure: ChannelError | undefined;
  #isReady = false;

  constructor(transport: ByteTransport) {
    this.#transport = transport;
    // The connection may fail before a caller awaits `closed`: that must not be an unhandled rejection.
    this.#ready.promise.catch(() => undefined);
    void this.#read();
  }

  /** Waits for the hello of the agent, for at most `timeoutMs`. */
  async handshake(timeoutMs: number, signal: AbortSignal | undefined): Promise<AgentInfo> {
    const timer = setTimeout(() => {
      this.#fail(new ChannelError('timeout', `The sandbox did not answer within ${timeoutMs} ms`));
    }, timeoutMs);
    const stop = onAbort(signal, (reason) => {
      this.#ready.reject(reason);
      this.#fail(new ChannelError('closed', 'Connecting was aborted', { cause: reason }));
    });
    try {
      return await this.#ready.promise;
    } finally {
      clearTimeout(timer);
      stop();
    }
  }

  /** Resolves, with the reason, when the connection has ended. */
  get closed(): Promise<ChannelError> {
    return this.#closed.promise;
  }

  /** Opens a session under a fresh id. From here on the session gets every message and the end, also when sending fails. */
  start(session: Session): number {
    if (this.#failure) throw this.#failure;
    if (this.#range === undefined) throw new ChannelError('closed', 'The channel is not open yet');
    const id = this.#range.take((candidate) => this.#sessions.has(candidate));
    this.#sessions.set(id, session);
    return id;
  }

  /** Resolves when the transport can take more. `behind` is sent in the same write, so that the peer wakes once for both. */
  async send(id: number, type: string, payload: Payload, behind?: readonly [string, Payload]): Promise<void> {
    if (this.#failure) throw this.#failure;
    try {
      const message = encodeMessage(id, type, payload);
      await this.#transport.write(
        behind === undefined ? message : joined(message, encodeMessage(id, ...behind)),
      );
    } catch (error) {
      if (error instanceof RangeError) throw error;
      this.#fail(new ChannelError('closed', 'The connection to the sandbox broke', { cause: error }));
      throw this.#failure ?? error;
    }
  }

  /** Sends a frame without waiting: a failure ends the connection, and with it every session. */
  post(id: number, type: string, payload: Payload): void {
    this.send(id, type, payload).catch(() => undefined);
  }

  /** Detaches the caller from a session; the id stays taken until the agent has sent its last message. */
  abandon(id: number): void {
    if (this.#sessions.has(id)) this.#sessions.set(id, ABANDONED);
  }

  /** Frees the id of a session for which the agent sends no last message. */
  forget(id: number): void {
    this.#sessions.delete(id);
  }

  close(): void {
    this.#fail(new ChannelError('closed', 'The channel was closed'));
  }

  async #read(): Promise<void> {
    try {
      for await (const chunk of this.#transport.readable) {
        const rest = this.#range === undefined ? this.#takeRange(chunk) : chunk;
        for (const frame of this.#splitter.push(rest)) {
          const hold = this.#route(frame);
          if (hold !== undefined) await hold;
          if (this.#failure) return;
        }
      }
      this.#fail(new ChannelError('closed', 'The sandbox closed the channel'));
    } catch (error) {
      this.#fail(asChannelError(error));
    }
  }

  /** The first bytes of a connection say which ids are ours; returns what follows them. */
  #takeRange(chunk: Uint8Array): Uint8Array {
    const taken = chunk.subarray(0, RANGE_BYTES - this.#rangeFilled);
    this.#rangeBytes.set(taken, this.#rangeFilled);
    this.#rangeFilled += taken.length;
    if (this.#rangeFilled === RANGE_BYTES) this.#range = IdRange.read(this.#rangeBytes);
    return chunk.subarray(taken.length);
  }

  #route(frame: Uint8Array): Promise<void> | undefined {
    if (!this.#isReady) {
      this.#ready.resolve(readReady(decodeMessage(frame)));
      this.#isReady = true;
      return undefined;
    }
    const { id, flags } = readFrameHead(frame);
    const session = this.#sessions.get(id);
    if (session === undefined) return undefined;
    if (!isTerminal(flags)) return this.#deliver(id, session, frame);
    const hold = this.#deliver(id, session, frame);
    this.#sessions.delete(id);
    session.lost(UNANSWERED);
    return hold;
  }

  #deliver(id: number, session: Session, frame: Uint8Array): Promise<void> | undefined {
    try {
      return session.receive(decodeMessage(frame));
    } catch (error) {
      // The frame is whole and only its payload is wrong, so the other sessions go on.
      this.abandon(id);
      session.lost(asChannelError(error));
      return undefined;
    }
  }

  #fail(error: ChannelError): void {
    if (this.#failure) return;
    this.#failure = error;
    this.#transport.close();
    this.#ready.reject(error);
    this.#closed.resolve(error);
    const sessions = [...this.#sessions.values()];
    this.#sessions.clear();
    for (const session of sessions) session.lost(error);
  }
}

function joined(first: Uint8Array, second: Uint8Array): Uint8Array {
  const both = new Uint8Array(first.length + second.length);
  both.set(first);
  both.set(second, first.length);
  return both;
}

/** Created once: every session gets it at the end, although most have their answer already. */
const UNANSWERED = new ChannelError('protocol', 'The sandbox ended the call without an answer');

const ABANDONED: Session = { receive: () => undefined, lost: () => undefined };

function readReady(message: Message): AgentInfo {
  if (message.type !== 'core.ready' || message.id !== 0) {
    throw new ChannelError('protocol', 'The sandbox did not begin with core.ready');
  }
  return {
    generation: Math.min(GENERATION, message.generation),
    version: readOptionalMessage(message.payload, 'agent_version'),
    features: readFeatures(message.payload),
    bootTimeNs: readUint(message.payload, 'boot_time_ns'),
    initTimeNs: readUint(message.payload, 'init_time_ns'),
    readyTimeNs: readUint(message.payload, 'ready_time_ns'),
  };
}

/** Other or older agents announce none. */
function readFeatures(payload: Payload): readonly string[] {
  const features = own(payload, 'features');
  return Array.isArray(features) ? features.filter((feature) => typeof feature === 'string') : [];
}

function asChannelError(error: unknown): ChannelError {
  if (error instanceof ChannelError) return error;
  if (error instanceof FrameError) {
    return new ChannelError('protocol', 'The sandbox sent bytes that are no frame', { cause: error });
  }
  return new ChannelError('closed', 'The connection to the sandbox broke', { cause: error });
}

/** The ids a client may use: counted up, wrapping, never 0. */
class IdRange {
  readonly #first: number;
  /** Not in the range. */
  readonly #end: number;
  #next: number;

  constructor(first: number, end: number) {
    if (first >= end || end <= 1) throw new ChannelError('protocol', 'The sandbox sent an invalid id range');
    this.#first = Math.max(1, first);
    this.#end = end;
    this.#next = this.#first;
  }

  static read(bytes: Uint8Array): IdRange {
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    return new IdRange(view.getUint32(0), view.getUint32(4));
  }

  /** The next id that is not in use. */
  take(isTaken: (id: number) => boolean): number {
    for (let tried = this.#first; tried < this.#end; tried++) {
      const id = this.#next;
      this.#next = id + 1 < this.#end ? id + 1 : this.#first;
      if (!isTaken(id)) return id;
    }
    throw new ChannelError('refused', 'Too many calls are under way on this channel; use another one');
  }
}
