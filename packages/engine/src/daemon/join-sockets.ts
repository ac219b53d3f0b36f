import type { Duplex } from 'node:stream';
import { reopenSocket } from '../guest/socket-transport.ts';

/** Enough for what most connections ever carry: a question, an answer. */
const FIRST_BYTES = 8 * 1024;
/** Room for a whole frame of output, so that a gigabyte takes some thousand reads. */
const BUFFER_BYTES = 256 * 1024;
/** How often a side that is not being read is asked whether it is still there. */
const PROBE_MS = 500;
const NO_BYTES = Buffer.alloc(0);

/**
 * Copies what arrives at either socket to the other, never faster than that one takes it, and ends both when one is over.
 * Each side is read into one buffer again and again: a stream makes a new one for every 64 KiB, and collecting them took
 * most of the engine's time. It is small until it was full once: what short connections leave is garbage too.
 * Both sockets must be paused; they are destroyed when the join is over.
 * `beforeOther` is called before anything of `one` is written to `other`.
 */
export function joinSockets(one: Duplex, other: Duplex, beforeOther: () => void = () => {}): void {
  const first = new Side(one, beforeOther);
  const second = new Side(other, () => {});
  first.forwardTo(second);
  second.forwardTo(first);
}

/** One of the two. */
class Side {
  readonly #original: Duplex;
  readonly #socket: Duplex;
  readonly #isReopened: boolean;
  readonly #beforeWrite: () => void;
  #buffer = Buffer.allocUnsafeSlow(FIRST_BYTES);
  #target: Duplex | undefined;
  #isWaiting = false;
  #probes: NodeJS.Timeout | undefined;

  constructor(original: Duplex, beforeWrite: () => void) {
    this.#original = original;
    this.#beforeWrite = beforeWrite;
    const reopened = reopenSocket(original, {
      buffer: () => this.#buffer,
      callback: (length, buffer) => this.#forward(buffer.subarray(0, length)),
    });
    this.#isReopened = reopened !== undefined;
    this.#socket = reopened ?? original;
  }

  forwardTo(peer: Side): void {
    this.#target = peer.#socket;
    // What was read before is on its way first.
    for (let chunk: unknown = this.#original.read(); chunk !== null; chunk = this.#original.read()) {
      this.#beforeWrite();
      peer.#socket.write(chunk);
    }
    const over = () => this.#end();
    this.#socket.once('end', over).once('close', over).on('error', over);
    this.#original.once('close', over);
    if (this.#isReopened) this.#socket.resume();
    else this.#socket.on('data', this.#beforeWrite).pipe(peer.#socket);
  }

  #forward(bytes: Uint8Array): boolean {
    const target = this.#target;
    if (target === undefined || target.destroyed) return false;
    if (bytes.byteLength === FIRST_BYTES) this.#buffer = Buffer.allocUnsafeSlow(BUFFER_BYTES);
    this.#beforeWrite();
    target.write(bytes, () => this.#goOn());
    // What the kernel did not take at once still lies in our buffer: nothing may be read over it.
    this.#isWaiting = target.writableLength > 0;
    if (this.#isWaiting) this.#probes ??= setInterval(() => this.#probe(), PROBE_MS);
    return !this.#isWaiting;
  }

  /**
   * The end of a socket that is not read from goes unnoticed, for ever when the other side takes nothing any more. Writing
   * nothing to it fails once its peer is gone.
   */
  #probe(): void {
    if (!this.#isWaiting) this.#stopProbing();
    else if (this.#socket.writableLength === 0) this.#socket.write(NO_BYTES);
  }

  #stopProbing(): void {
    clearInterval(this.#probes);
    this.#probes = undefined;
  }

  #goOn(): void {
    const target = this.#target;
    if (!this.#isWaiting || target === undefined || target.writableLength > 0) return;
    this.#isWaiting = false;
    this.#socket.resume();
  }

  /** What was sent to the peer still reaches it. */
  #end(): void {
    this.#stopProbing();
    this.#target?.end();
    this.#socket.destroy();
    this.#original.destroy();
  }
}
