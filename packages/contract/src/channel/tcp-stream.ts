import type { Message } from '../frames/frame.ts';
import { abortable, onAbort } from '../async/abort.ts';
import { ByteQueue } from './byte-queue.ts';
import type { ByteStream } from './byte-queue.ts';
import { ChannelError } from './channel-error.ts';
import type { Connection, Session } from './connection.ts';
import { readBytes, readMessage } from './payload-fields.ts';
import { refusal } from './single-answer.ts';

const CHUNK_BYTES = 64 * 1024;
/** Unread bytes that are held before the whole connection waits for the reader. */
const UNREAD_LIMIT_BYTES = 1024 * 1024;

/**
 * A TCP connection made from inside the sandbox.
 * - `readable` ends when the far side has sent all. With 1 MiB unread the whole channel connection waits for its reader.
 * - `end` closes our half; the other direction stays open. `close` drops both.
 * - `closed` resolves when the connection is over and rejects when it broke.
 */
export interface TcpStream {
  readonly readable: ByteStream;
  readonly closed: Promise<void>;
  write(data: Uint8Array): Promise<void>;
  end(): Promise<void>;
  close(): void;
}

/** Resolves when the connection is established; from then on the signal has no effect. The name is resolved inside the sandbox. */
export async function connectTcp(
  connection: Connection,
  host: string,
  port: number,
  signal: AbortSignal | undefined,
): Promise<TcpStream> {
  signal?.throwIfAborted();
  const stream = new TcpSession(connection);
  const stop = onAbort(signal, (reason) => stream.drop(reason));
  try {
    await abortable(connection.send(stream.id, 'core.tcp.connect', { host, port }), signal);
    await abortable(stream.connected, signal);
    return stream;
  } finally {
    stop();
  }
}

class TcpSession implements Session, TcpStream {
  readonly id: number;
  readonly readable = new ByteQueue(UNREAD_LIMIT_BYTES);
  readonly #connection: Connection;
  readonly #connected = Promise.withResolvers<void>();
  readonly #closed = Promise.withResolvers<void>();
  #isOver = false;

  constructor(connection: Connection) {
    this.#connection = connection;
    // Callers may ignore either promise: that must not be an unhandled rejection.
    this.#connected.promise.catch(() => undefined);
    this.#closed.promise.catch(() => undefined);
    this.id = connection.start(this);
  }

  get connected(): Promise<void> {
    return this.#connected.promise;
  }

  get closed(): Promise<void> {
    return this.#closed.promise;
  }

  async write(data: Uint8Array): Promise<void> {
    for (let start = 0; start < data.length; start += CHUNK_BYTES) {
      this.#requireOpen();
      await this.#connection.send(this.id, 'core.tcp.data', {
        data: data.subarray(start, start + CHUNK_BYTES),
      });
    }
  }

  async end(): Promise<void> {
    if (!this.#isOver) await this.#connection.send(this.id, 'core.tcp.eof', {});
  }

  close(): void {
    this.drop(undefined);
  }

  drop(reason: Error | undefined): void {
    if (this.#isOver) return;
    this.#connection.post(this.id, 'core.tcp.close', {});
    // The agent does not answer a close, so the id is freed here.
    this.#connection.forget(this.id);
    this.#finish(reason);
  }

  receive(message: Message): Promise<void> | undefined {
    switch (message.type) {
      case 'core.tcp.data':
        return this.readable.push(readBytes(message.payload, 'data'));
      case 'core.tcp.connected':
        this.#connected.resolve();
        return undefined;
      case 'core.tcp.eof':
        this.readable.end();
        return undefined;
      case 'core.tcp.closed':
        this.#finish(undefined);
        return undefined;
      case 'core.tcp.failed':
        this.#finish(
          new ChannelError('refused', readMessage(message.payload, 'error') || 'The connection failed'),
        );
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

  #finish(error: Error | undefined): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#connected.reject(error ?? new ChannelError('closed', 'The connection was closed'));
    if (error) this.#closed.reject(error);
    else this.#closed.resolve();
    this.readable.end(error);
  }

  #requireOpen(): void {
    if (this.#isOver) throw new ChannelError('closed', 'The TCP connection is closed');
  }
}
