import { connect as connectPlain, type Socket } from 'node:net';

/** Room for a whole frame of output. Memory that no read has reached yet costs nothing. */
const BUFFER_BYTES = 256 * 1024;
/** One is with the reader while the other is filled. */
const BUFFERS = 2;

/**
 * What a socket receives, chunk by chunk, read into the same few buffers: Node otherwise makes a new one for every 64 KiB,
 * and collecting those takes most of the time of bulk traffic. A chunk is lent until the next one is asked for.
 * While nobody asks, the socket is not read, so that the peer waits.
 */
export class LentChunks {
  readonly socket: Socket;
  readonly #buffers: Buffer[] = [];
  readonly #chunks: Uint8Array[] = [];
  #inUse = 0;
  #isLent = false;
  #end: { readonly error?: Error } | undefined;
  #wake: (() => void) | undefined;

  private constructor(open: (chunks: LentChunks) => Socket) {
    this.socket = open(this);
    this.socket.on('end', () => this.#finish({}));
    this.socket.on('error', (error) => this.#finish({ error }));
    this.socket.on('close', () => this.#finish({}));
  }

  static connect(host: string, port: number): LentChunks {
    return new LentChunks((chunks) =>
      connectPlain({
        host,
        port,
        noDelay: true,
        onread: {
          buffer: () => chunks.#nextBuffer(),
          callback: (length, buffer) => chunks.#take(buffer.subarray(0, length)),
        },
      }),
    );
  }

  /** The name is checked against the certificate. What is decrypted cannot be read into given buffers. */
  static connectSecurely(host: string, port: number): LentChunks {
    const { connect } = process.getBuiltinModule('node:tls');
    return new LentChunks((chunks) => {
      const socket = connect({ host, port });
      socket.setNoDelay(true);
      return socket.on('data', (chunk: Buffer) => {
        if (!chunks.#take(chunk)) socket.pause();
      });
    });
  }

  /** Undefined at the end. @throws when the connection broke */
  async read(): Promise<Uint8Array | undefined> {
    this.#giveBack();
    for (;;) {
      const chunk = this.#chunks.shift();
      if (chunk !== undefined) {
        this.#isLent = true;
        return chunk;
      }
      if (this.#end?.error) throw this.#end.error;
      if (this.#end) return undefined;
      const waiting = Promise.withResolvers<void>();
      this.#wake = waiting.resolve;
      await waiting.promise;
    }
  }

  #giveBack(): void {
    if (!this.#isLent) return;
    this.#isLent = false;
    this.#inUse -= 1;
    if (this.#inUse === BUFFERS - 1) this.socket.resume();
  }

  /** Node asks for it once at first, and then after every read. Buffers are filled, and given back, in turn. */
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

  #finish(end: { readonly error?: Error }): void {
    this.#end ??= end;
    this.#wake?.();
  }
}
