import { Socket, type OnReadOpts } from 'node:net';
import type { Duplex } from 'node:stream';
import { LentChunks, type ByteTransport } from '@svc/contract/channel';

/** What we use of Node's own side of a connection. */
export interface ConnectionHandle {
  reading: boolean;
  readonly fd: number;
  readStop(): number;
  useUserBuffer(buffer: Uint8Array): void;
  close(): void;
}

export interface TakenHandle {
  readonly handle: ConnectionHandle;
  /** The stream is as it was before. */
  giveBack(): void;
}

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
  const taken = takeHandle(stream);
  if (taken === undefined) return undefined;
  // `handle` is how Node itself makes a socket of a connection; its types leave it out.
  const options = { handle: taken.handle, onread } as unknown as ConstructorParameters<typeof Socket>[0];
  const reopened = new Socket(options);
  stream.once('close', () => reopened.destroy());
  reopened.once('close', () => stream.destroy());
  return reopened;
}

/**
 * Takes the connection of a socket away from it, so that something else can read from it and write to it. Afterwards the stream gives
 * what it had read before, and nothing else; whoever has the handle closes it. Undefined, and nothing has changed, when the
 * stream is no plain socket or has not sent everything yet.
 */
export function takeHandle(stream: Duplex): TakenHandle | undefined {
  // A subclass does more than its connection: TLS decrypts.
  if (!(stream instanceof Socket) || Object.getPrototypeOf(stream) !== Socket.prototype) return undefined;
  if (stream.connecting || stream.destroyed || stream.writableEnded || stream.writableLength > 0)
    return undefined;
  // Not in Node's types, though cluster and child processes hand connections over by it.
  const owner = stream as unknown as { _handle?: Partial<ConnectionHandle> | null };
  const handle = owner._handle ?? undefined;
  if (!isWhole(handle)) return undefined;
  owner._handle = null;
  // A new owner begins to read by itself; told that the handle reads already, it would miss an end that came before.
  handle.readStop();
  handle.reading = false;
  // It sees no traffic any more, so it would take the connection for an idle one.
  stream.setTimeout(0);
  return { handle, giveBack: () => void (owner._handle = handle) };
}

function isWhole(handle: Partial<ConnectionHandle> | undefined): handle is ConnectionHandle {
  return typeof handle?.useUserBuffer === 'function' && typeof handle.readStop === 'function';
}

/** Hands over the chunks as the socket gives them. (A stream's own iterator joins what has piled up, which copies it.) */
class SocketReader implements AsyncIterable<Uint8Array> {
  readonly socket: Duplex;
  readonly #chunks = new LentChunks(
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
    // It comes paused when its first bytes have been read elsewhere.
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

  /** What the original socket had read already. */
  #takeEarly(original: Duplex): void {
    for (let chunk: unknown = original.read(); chunk !== null; chunk = original.read())
      this.#chunks.take(chunk as Buffer);
  }

  /** The slower way, with memory that the stream makes for every chunk. */
  #takeData(): void {
    this.socket.on('data', (chunk: Buffer) => {
      if (!this.#chunks.take(chunk)) this.socket.pause();
    });
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
