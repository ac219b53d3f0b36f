import type { Duplex } from 'node:stream';
import { reopenSocket } from '@svc/contract/node-socket-transport';
import { tcpOf } from './below-tls.ts';

/** Enough for most connections: one request and one response. */
const FIRST_BYTES = 8 * 1024;
/** Holds a whole frame of output, so that a gigabyte takes some thousand reads. */
const BUFFER_BYTES = 256 * 1024;
/** How often a side that is not being read is probed for a closed peer. */
const PROBE_MS = 500;
const NO_BYTES = Buffer.alloc(0);

/**
 * Copies bytes between a caller and a session of svc-init with back-pressure, and ends both when one ends.
 * Each side is read into one reused buffer: a stream allocates a new one for every 64 KiB, and collecting them took most of the
 * engine's time. The buffer starts small and grows when it was full once, so that short connections leave little garbage.
 * A caller over TLS is read by the stream, which decrypts into memory of its own.
 * Both sockets must be paused; they are destroyed at the end. A slow caller still gets all that the guest sent.
 * `beforeGuest` is called before each write to the guest.
 */
export function joinSockets(caller: Duplex, guest: Duplex, beforeGuest: () => void): void {
  const callerSide = new Side(caller, { isCaller: true, beforeWrite: beforeGuest });
  const guestSide = new Side(guest, { isCaller: false, beforeWrite: () => {} });
  callerSide.forwardTo(guestSide);
  guestSide.forwardTo(callerSide);
}

interface SideOptions {
  /**
   * A failed write destroys a socket with its unread bytes, and those of a guest belong to the caller. So a guest is never probed, and
   * it is written to after the reads of the same turn of the event loop.
   */
  readonly isCaller: boolean;
  readonly beforeWrite: () => void;
}

/** One of the two sides. */
class Side {
  readonly #original: Duplex;
  readonly #socket: Duplex;
  readonly #isReopened: boolean;
  readonly #isCaller: boolean;
  readonly #beforeWrite: () => void;
  #buffer = Buffer.allocUnsafeSlow(FIRST_BYTES);
  #target: Duplex | undefined;
  #isWaiting = false;
  #probes: NodeJS.Timeout | undefined;

  constructor(original: Duplex, { isCaller, beforeWrite }: SideOptions) {
    this.#original = original;
    this.#isCaller = isCaller;
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
    // Bytes that were read before are sent first.
    for (let chunk: unknown = this.#original.read(); chunk !== null; chunk = this.#original.read()) {
      this.#beforeWrite();
      peer.#socket.write(chunk);
    }
    // A stream tells its end also while it is paused, before the bytes that wait for the end of this turn were written.
    const over = this.#isReopened ? () => this.#end() : () => setImmediate(() => this.#end());
    this.#socket.once('end', over).once('close', over).on('error', over);
    this.#original.once('close', over);
    if (!this.#isReopened)
      this.#socket.on('data', (bytes: Buffer) => {
        if (!this.#forward(bytes)) this.#socket.pause();
      });
    this.#socket.resume();
  }

  /** False: nothing is read until `resume`. */
  #forward(bytes: Uint8Array): boolean {
    if (!this.#isCaller) return this.#write(bytes);
    setImmediate(() => {
      // The bytes of a stream that has ended since are still to be written; it may be destroyed by its end.
      if (this.#isReopened && this.#socket.destroyed) return;
      if (this.#write(bytes)) this.#socket.resume();
    });
    return false;
  }

  /** Whether the kernel took all of it. */
  #write(bytes: Uint8Array): boolean {
    const target = this.#target;
    if (target === undefined || target.destroyed) return false;
    if (this.#isReopened && bytes.byteLength === FIRST_BYTES)
      this.#buffer = Buffer.allocUnsafeSlow(BUFFER_BYTES);
    this.#beforeWrite();
    target.write(bytes, () => this.#goOn());
    // Bytes that the kernel did not take are still in the buffer: no read may overwrite them.
    this.#isWaiting = target.writableLength > 0;
    if (this.#isWaiting && this.#isCaller) this.#probes ??= setInterval(() => this.#probe(), PROBE_MS);
    return !this.#isWaiting;
  }

  /**
   * A socket that is not being read does not report its end, forever when the other side stopped reading. An empty write fails once the
   * peer is gone. TLS would not pass it on to the kernel, nor report its failure.
   */
  #probe(): void {
    const socket = tcpOf(this.#socket);
    if (!this.#isWaiting) this.#stopProbing();
    else if (socket.writableLength === 0) socket.write(NO_BYTES);
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

  /** Bytes already sent to the peer are still delivered. */
  #end(): void {
    this.#stopProbing();
    const target = this.#target;
    target?.end(() => target.destroy());
    this.#socket.destroy();
    this.#original.destroy();
  }
}
