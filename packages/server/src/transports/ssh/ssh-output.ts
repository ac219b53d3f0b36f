import { once } from 'node:events';
import type { Socket } from 'node:net';
import type { Writable } from 'node:stream';
import type { ServerChannel } from 'ssh2';

/** A client that reads no more is sent no more. */
const MAX_UNSENT_BYTES = 1024 * 1024;
/** What ssh2 keeps of a write that had to wait. */
const NOTHING_KEPT = { _chunk: undefined, _chunkcb: undefined, _chunkErr: undefined, _chunkcbErr: undefined };

/**
 * Writes to one channel of an SSH connection, one chunk after the other.
 * ssh2 keeps a chunk that had to wait for the client's window, and its callback. When the other stream of the same channel has
 * to wait later, it sends that chunk once more, or calls that callback again, which breaks the channel; so no two writes
 * overlap, and what it kept is taken away after each. It also hands everything to the socket at once, whoever reads it; so
 * that is waited for here.
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
    // Connections outlive their channels by far.
    channel.once('close', () => {
      socket.off('close', end);
      end();
    });
    // SAFETY: whoever writes is told; an error that nobody listens for would end the server, and a client can cause one.
    channel.on('error', () => undefined);
    channel.stderr.on('error', () => undefined);
    socket.once('close', end);
    this.#closed = over.promise;
    this.#closed.catch(() => undefined);
  }

  /** Resolves when more can be sent; rejects when the channel is over. */
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
