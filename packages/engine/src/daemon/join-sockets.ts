import { Socket } from 'node:net';
import type { Duplex } from 'node:stream';

/** Room for a whole frame of output, so that a gigabyte takes some thousand reads. */
const BUFFER_BYTES = 256 * 1024;

/**
 * Copies what arrives at either socket to the other, never faster than that one takes it, and ends both when one is over.
 * Each side is read into one buffer again and again: a stream makes a new one for every 64 KiB, and collecting them took
 * most of the engine's time. Both sockets must be paused; they are destroyed when the join is over.
 */
export function joinSockets(one: Duplex, other: Duplex): void {
  const first = new Side(one);
  const second = new Side(other);
  first.forwardTo(second);
  second.forwardTo(first);
}

/** One of the two. Node reads into a given buffer only when it makes the socket, so a new one takes over the connection. */
class Side {
  readonly #original: Duplex;
  readonly #socket: Duplex;
  readonly #isReopened: boolean;
  #target: Duplex | undefined;
  #isWaiting = false;

  constructor(original: Duplex) {
    this.#original = original;
    const handle = takeHandle(original);
    this.#isReopened = handle !== undefined;
    this.#socket = handle === undefined ? original : this.#reopen(handle);
  }

  forwardTo(peer: Side): void {
    this.#target = peer.#socket;
    // What was read before is on its way first.
    for (let chunk: unknown = this.#original.read(); chunk !== null; chunk = this.#original.read())
      peer.#socket.write(chunk);
    const over = () => this.#end();
    this.#socket.once('end', over).once('close', over).on('error', over);
    this.#original.once('close', over);
    if (this.#isReopened) this.#socket.resume();
    else this.#socket.pipe(peer.#socket);
  }

  #reopen(handle: object): Socket {
    const onread = {
      buffer: Buffer.allocUnsafeSlow(BUFFER_BYTES),
      callback: (length: number, buffer: Uint8Array) => this.#forward(buffer.subarray(0, length)),
    };
    // `handle` is how Node itself makes a socket of a connection; its types leave it out.
    return new Socket({ handle, onread } as ConstructorParameters<typeof Socket>[0]);
  }

  #forward(bytes: Uint8Array): boolean {
    const target = this.#target;
    if (target === undefined || target.destroyed) return false;
    target.write(bytes, () => this.#goOn());
    // What the kernel did not take at once still lies in our buffer: nothing may be read over it.
    this.#isWaiting = target.writableLength > 0;
    return !this.#isWaiting;
  }

  #goOn(): void {
    const target = this.#target;
    if (!this.#isWaiting || target === undefined || target.writableLength > 0) return;
    this.#isWaiting = false;
    this.#socket.resume();
  }

  /** What was sent to the peer still reaches it. */
  #end(): void {
    this.#target?.end();
    this.#socket.destroy();
    this.#original.destroy();
  }
}

/** Undefined when the stream is no plain socket, or has not sent everything yet: it is then copied the slower way. */
function takeHandle(stream: Duplex): object | undefined {
  if (!(stream instanceof Socket) || stream.writableLength > 0) return undefined;
  // Not in Node's types, though cluster and child processes hand connections over by it.
  const owner = stream as unknown as { _handle?: { readonly useUserBuffer?: unknown } | null };
  const handle = owner._handle ?? undefined;
  if (typeof handle?.useUserBuffer !== 'function') return undefined;
  owner._handle = null;
  return handle;
}
