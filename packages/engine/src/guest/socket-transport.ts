import { Socket, type OnReadOpts } from 'node:net';
import type { Duplex } from 'node:stream';
import type { ByteTransport } from '@svc/contract/channel';

/** Room for a whole frame of output. Memory that no read has reached yet costs nothing. */
const BUFFER_BYTES = 256 * 1024;
/** One is with the reader while the other is filled. */
const BUFFERS = 2;

/** A channel transport over a Node socket, or any other duplex stream, which it owns from here on. */
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
 * Moves the connection of a socket to a new one that reads into given buffers, since Node takes those only when it makes a
 * socket: otherwise it makes a new buffer for every 64 KiB, and collecting them takes most of the time of bulk traffic.
 * Afterwards the original gives what it had read before, and nothing else; destroying either destroys both.
 * Undefined, and nothing has changed, when the stream is no plain socket or has not sent everything yet.
 */
export function reopenSocket(stream: Duplex, onread: OnReadOpts): Socket | undefined {
  // A subclass does more than its connection: TLS decrypts.
  if (!(stream instanceof Socket) || Object.getPrototypeOf(stream) !== Socket.prototype) return undefined;
  if (stream.connecting || stream.destroyed || stream.writableEnded || stream.writableLength > 0)
    return undefined;
  // Not in Node's types, though cluster and child processes hand connections over by it.
  const owner = stream as unknown as { _handle?: Partial<Handle> | null };
  const handle = owner._handle ?? undefined;
  if (typeof handle?.useUserBuffer !== 'function' || typeof handle.readStop !== 'function') return undefined;
  owner._handle = null;
  // The new socket begins to read by itself; told that the handle reads already, it would miss an end that came before.
  handle.readStop();
  handle.reading = false;
  // It sees no traffic any more, so it would take the connection for an idle one.
  stream.setTimeout(0);
  // `handle` is how Node itself makes a socket of a connection; its types leave it out.
  const reopened = new Socket({ handle, onread } as ConstructorParameters<typeof Socket>[0]);
  stream.once('close', () => reopened.destroy());
  reopened.once('close', () => stream.destroy());
  return reopened;
}

/** What we use of Node's own side of a connection. */
interface Handle {
  reading: boolean;
  readStop(): number;
  useUserBuffer(buffer: Uint8Array): void;
}

/**
 * Hands over the chunks as the socket gives them. (A stream's own iterator joins what has piled up, which copies it.)
 * A chunk is in use from its arrival until the reader asks for the one after it. The buffers are filled in turn and
 * given back in the same order, so while fewer chunks than buffers are in use, the next buffer is free.
 */
class SocketReader implements AsyncIterable<Uint8Array> {
  readonly socket: Duplex;
  /** In the order in which they are filled. */
  readonly #buffers: Buffer[] = [];
  readonly #chunks: Uint8Array[] = [];
  #inUse = 0;
  #isOver = false;
  #error: Error | undefined;
  #wake: (() => void) | undefined;

  constructor(stream: Duplex) {
    const reopened = reopenSocket(stream, {
      buffer: () => this.#nextBuffer(),
      callback: (length, buffer) => this.#take(buffer.subarray(0, length)),
    });
    this.socket = reopened ?? stream;
    this.#observe();
    if (reopened) this.#takeEarly(stream);
    else this.#takeData();
    // Whoever read something from the socket before has left it paused.
    this.socket.resume();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array, void> {
    for (;;) {
      const chunk = this.#chunks.shift();
      if (chunk !== undefined) {
        yield chunk;
        this.#inUse -= 1;
        if (this.#inUse === BUFFERS - 1) this.socket.resume();
      } else if (this.#error) {
        throw this.#error;
      } else if (this.#isOver) {
        return;
      } else {
        const waiting = Promise.withResolvers<void>();
        this.#wake = waiting.resolve;
        await waiting.promise;
      }
    }
  }

  #observe(): void {
    this.socket.on('end', () => this.#finish(undefined));
    this.socket.on('error', (error) => this.#finish(error));
    this.socket.on('close', () => this.#finish(undefined));
  }

  /** What the original socket had read already. */
  #takeEarly(original: Duplex): void {
    for (let chunk: unknown = original.read(); chunk !== null; chunk = original.read())
      this.#take(chunk as Buffer);
  }

  /** The slower way, with memory that the stream makes for every chunk. */
  #takeData(): void {
    this.socket.on('data', (chunk: Buffer) => {
      if (!this.#take(chunk)) this.socket.pause();
    });
  }

  /** Node asks for it once at first, and then after every read. */
  #nextBuffer(): Buffer {
    const free = this.#buffers.length === BUFFERS ? this.#buffers.shift() : undefined;
    const buffer = free ?? Buffer.allocUnsafeSlow(BUFFER_BYTES);
    this.#buffers.push(buffer);
    return buffer;
  }

  /** False when nothing more may be read for now. */
  #take(chunk: Uint8Array): boolean {
    // Not a Node Buffer, whose `slice` is no copy.
    this.#chunks.push(new Uint8Array(chunk.buffer, chunk.byteOffset, chunk.byteLength));
    this.#inUse += 1;
    this.#wake?.();
    return this.#inUse < BUFFERS;
  }

  #finish(error: Error | undefined): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#error = error;
    this.#wake?.();
  }
}

/** Writes one after the other: while the socket has no room, what waits is held by its callers, not by the socket. */
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

  /** Once it has failed everything after fails too, since the socket is gone. */
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
