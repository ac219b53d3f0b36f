import { Socket, type OnReadOpts } from 'node:net';
import type { Duplex } from 'node:stream';
import { PooledChunks, type ByteTransport } from './channel/index.ts';

/** The part of Node's internal connection handle that we use. */
interface ConnectionHandle {
  reading: boolean;
  readStop(): number;
  useUserBuffer(buffer: Uint8Array): void;
}

/** A channel transport over a Node socket or another duplex stream, which it owns from here on. */
export function socketTransport(stream: Duplex): ByteTransport {
  const reader = new SocketReader(stream);
  const writer = new SocketWriter(reader.socket);
  return {
    readable: reader,
    write: (bytes) => writer.write(bytes),
    close: () => reader.socket.destroy(),
  };
}

/**
 * Moves the connection of a socket to a new one that reads into given buffers, which Node accepts only at construction: otherwise Node
 * allocates a buffer for every 64 KiB, and garbage collection takes most of the time of bulk traffic. Afterwards the original emits only
 * the data it had read before; destroying either destroys both. Undefined, and no change, when the stream is not a plain socket or has
 * unsent data.
 */
export function reopenSocket(stream: Duplex, onread: OnReadOpts): Socket | undefined {
  const handle = takeHandle(stream);
  if (handle === undefined) return undefined;
  // Node's internal option `handle` makes a socket of a connection; the types omit it.
  const options = { handle, onread } as unknown as ConstructorParameters<typeof Socket>[0];
  const reopened = new Socket(options);
  stream.once('close', () => reopened.destroy());
  reopened.once('close', () => stream.destroy());
  return reopened;
}

/** Undefined, and no change, when the stream is not a plain socket or has unsent data. */
function takeHandle(stream: Duplex): ConnectionHandle | undefined {
  // Subclasses transform the data: TLS decrypts.
  if (!(stream instanceof Socket) || Object.getPrototypeOf(stream) !== Socket.prototype) return undefined;
  if (stream.connecting || stream.destroyed || stream.writableEnded || stream.writableLength > 0)
    return undefined;
  // Not in Node's types; cluster and child processes pass connections with it.
  const owner = stream as unknown as { _handle?: Partial<ConnectionHandle> | null };
  const handle = owner._handle ?? undefined;
  if (!isWhole(handle)) return undefined;
  owner._handle = null;
  // The new owner starts reading itself; on a handle that reads already it would miss an end that came before.
  handle.readStop();
  handle.reading = false;
  // The socket sees no traffic any more, so its idle timeout would fire.
  stream.setTimeout(0);
  return handle;
}

function isWhole(handle: Partial<ConnectionHandle> | undefined): handle is ConnectionHandle {
  return typeof handle?.useUserBuffer === 'function' && typeof handle.readStop === 'function';
}

/** Yields the chunks as the socket emits them. (The stream's own iterator joins buffered chunks, which copies them.) */
class SocketReader implements AsyncIterable<Uint8Array> {
  readonly socket: Duplex;
  readonly #chunks = new PooledChunks(
    () => this.socket.resume(),
    (bytes) => Buffer.allocUnsafeSlow(bytes),
  );

  constructor(stream: Duplex) {
    const reopened = reopenSocket(stream, {
      buffer: () => this.#chunks.nextBuffer(),
      callback: (length, buffer) => this.#chunks.take(buffer.subarray(0, length)),
    });
    this.socket = reopened ?? stream;
    this.#observe();
    if (reopened) this.#takeEarly(stream);
    else this.#takeData();
    // The socket is paused when its first bytes were read elsewhere.
    this.socket.resume();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array, void> {
    for (;;) {
      const chunk = await this.#chunks.read();
      if (chunk === undefined) return;
      yield chunk;
    }
  }

  #observe(): void {
    this.socket.on('end', () => this.#chunks.finish());
    this.socket.on('error', (error) => this.#chunks.finish(error));
    this.socket.on('close', () => this.#chunks.finish());
  }

  /** Takes the data that the original socket had read already. */
  #takeEarly(original: Duplex): void {
    for (let chunk: unknown = original.read(); chunk !== null; chunk = original.read())
      this.#chunks.take(chunk as Buffer);
  }

  /** The slower path: the stream allocates memory for every chunk. */
  #takeData(): void {
    this.socket.on('data', (chunk: Buffer) => {
      if (!this.#chunks.take(chunk)) this.socket.pause();
    });
  }
}

/** Serializes writes: while the socket is full, its callers hold the pending data, not the socket. */
class SocketWriter {
  readonly #socket: Duplex;
  #last: Promise<void> = Promise.resolve();

  constructor(socket: Duplex) {
    this.#socket = socket;
  }

  write(bytes: Uint8Array): Promise<void> {
    this.#last = this.#last.then(() => this.#writeNow(bytes));
    return this.#last;
  }

  /** After a failure all later writes fail too, since the socket is closed. */
  #writeNow(bytes: Uint8Array): Promise<void> | undefined {
    const socket = this.#socket;
    if (socket.destroyed || socket.writableEnded) throw new Error('The socket is closed');
    if (socket.write(bytes)) return undefined;
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const settle = (): void => {
      socket.off('drain', settle);
      socket.off('close', settle);
      if (socket.destroyed) reject(new Error('The socket was closed'));
      else resolve();
    };
    socket.on('drain', settle);
    socket.on('close', settle);
    return promise;
  }
}
