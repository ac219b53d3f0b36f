import { once } from 'node:events';
import type { Socket } from 'node:net';
import type { Writable } from 'node:stream';
import type { ServerChannel } from 'ssh2';

/** Writing pauses above this number of unsent bytes. */
const MAX_UNSENT_BYTES = 1024 * 1024;
/** The state that ssh2 keeps of a write that had to wait. */
const NOTHING_KEPT = { _chunk: undefined, _chunkcb: undefined, _chunkErr: undefined, _chunkcbErr: undefined };

/**
 * Writes to one channel of an SSH connection, one chunk after the other.
 * ssh2 keeps a chunk that had to wait for the client's window, and its callback. When the other stream of the same
 * channel has to wait later, ssh2 sends that chunk again, or calls that callback again, which breaks the channel. So
 * writes are serialized, and the kept state is cleared after each. ssh2 also passes data to the socket without
 * back-pressure, so that is added here.
 */
export class SshOutput {
  readonly #channel: ServerChannel;
  readonly #socket: Socket;
  readonly #onSent: (bytes: number) => void;
  readonly #closed: Promise<never>;
  #tail: Promise<void> = Promise.resolve();

  constructor(channel: ServerChannel, socket: Socket, onSent: (bytes: number) => void) {
    this.#channel = channel;
    this.#socket = socket;
    this.#onSent = onSent;
    const over = Promise.withResolvers<never>();
    const end = () => over.reject(new Error('the client closed the channel'));
    // Removed, because connections outlive their channels by far.
    channel.once('close', () => {
      socket.off('close', end);
      end();
    });
    // SAFETY: the writer gets the error by its callback; without a listener, the event would end the server, and a
    // client can cause it.
    channel.on('error', () => undefined);
    channel.stderr.on('error', () => undefined);
    socket.once('close', end);
    this.#closed = over.promise;
    this.#closed.catch(() => undefined);
  }

  /** Resolves when more can be sent; rejects when the channel is closed. */
  async write(chunk: Uint8Array, stream: 'stdout' | 'stderr' = 'stdout'): Promise<void> {
    const target: Writable = stream === 'stdout' ? this.#channel : this.#channel.stderr;
    const turn = this.#tail.then(() => this.#send(target, chunk));
    this.#tail = turn.catch(() => undefined);
    await turn;
  }

  async pump(source: AsyncIterable<Uint8Array>, stream: 'stdout' | 'stderr' = 'stdout'): Promise<void> {
    for await (const chunk of source) await this.write(chunk, stream);
  }

  async #send(target: Writable, chunk: Uint8Array): Promise<void> {
    const written = new Promise<void>((resolve, reject) => {
      target.write(chunk, (error) => (error ? reject(error) : resolve()));
    });
    await Promise.race([written, this.#closed]);
    Object.assign(this.#channel, NOTHING_KEPT);
    this.#onSent(chunk.length);
    if (this.#socket.writableLength > MAX_UNSENT_BYTES) {
      await Promise.race([once(this.#socket, 'drain'), this.#closed]);
    }
  }
}
