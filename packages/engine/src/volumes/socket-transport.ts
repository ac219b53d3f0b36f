import type { Duplex } from 'node:stream';
import type { ByteTransport } from '@svc/contract/channel';

/** Bytes that we hold unread before the socket is told to wait. */
const UNREAD_LIMIT_BYTES = 256 * 1024;

/** A channel transport over a Node socket, which it owns from here on. */
export function socketTransport(socket: Duplex): ByteTransport {
  const reader = new SocketReader(socket);
  const writer = new SocketWriter(socket);
  return {
    readable: reader,
    write: (bytes) => writer.write(bytes),
    close: () => socket.destroy(),
  };
}

/**
 * Hands over the chunks as the socket gives them. (A stream's own iterator joins what has piled up, which copies it.)
 */
class SocketReader implements AsyncIterable<Uint8Array> {
  readonly #socket: Duplex;
  readonly #chunks: Uint8Array[] = [];
  #unreadBytes = 0;
  #isOver = false;
  #error: Error | undefined;
  #wake: (() => void) | undefined;

  constructor(socket: Duplex) {
    this.#socket = socket;
    socket.on('data', (chunk: Buffer) => this.#take(chunk));
    socket.on('end', () => this.#finish(undefined));
    socket.on('error', (error) => this.#finish(error));
    socket.on('close', () => this.#finish(undefined));
    // Whoever read something from the socket before has left it paused.
    socket.resume();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array, void> {
    for (;;) {
      const chunk = this.#chunks.shift();
      if (chunk !== undefined) {
        this.#unreadBytes -= chunk.length;
        if (this.#unreadBytes < UNREAD_LIMIT_BYTES) this.#socket.resume();
        yield chunk;
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

  #take(chunk: Buffer): void {
    this.#chunks.push(new Uint8Array(chunk.buffer, chunk.byteOffset, chunk.byteLength));
    this.#unreadBytes += chunk.length;
    if (this.#unreadBytes >= UNREAD_LIMIT_BYTES) this.#socket.pause();
    this.#wake?.();
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
