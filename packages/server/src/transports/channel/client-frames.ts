import { FrameError, MAX_FRAME_BYTES } from '@svc/contract/frames';

const LENGTH_BYTES = 4;
const HEAD_BYTES = 9;
/** Id and flags, which the length word includes. */
const LEAST_LENGTH = 5;
const SESSION_START = 2;
const SHUTDOWN = 4;

/** Input of a client, in order: bytes to forward unchanged, or one complete frame that begins a session. */
export type ClientPiece =
  | { readonly kind: 'bytes'; readonly bytes: Uint8Array }
  | { readonly kind: 'session'; readonly bytes: Uint8Array };

/**
 * Splits a client's bytes into frames without decoding them. Buffers only frames that begin a session, one at a time;
 * everything else is forwarded unbuffered. svc-init accepts only flags that fit the type, so a process cannot begin
 * with another frame.
 */
export class ClientFrames {
  readonly #head = Buffer.alloc(HEAD_BYTES);
  #headFilled = 0;
  /** Remaining bytes of the current frame's body. */
  #left = 0;
  /** The received parts of a frame that begins a session; undefined during other frames. */
  #held: Uint8Array[] | undefined;

  /** @throws FrameError when the bytes are not frames, or are a frame that clients may not send */
  *push(chunk: Uint8Array): Generator<ClientPiece> {
    let position = 0;
    while (position < chunk.length) {
      if (this.#left > 0) {
        const part = chunk.subarray(position, position + this.#left);
        position += part.length;
        this.#left -= part.length;
        if (this.#held === undefined) yield { kind: 'bytes', bytes: part };
        else this.#held.push(part);
      } else {
        position += this.#fillHead(chunk.subarray(position));
        if (this.#headFilled < HEAD_BYTES) return;
        const head = this.#beginFrame();
        if (head !== undefined) yield { kind: 'bytes', bytes: head };
      }
      if (this.#left === 0 && this.#held !== undefined) {
        const frame = Buffer.concat(this.#held);
        this.#held = undefined;
        yield { kind: 'session', bytes: frame };
      }
    }
  }

  #fillHead(chunk: Uint8Array): number {
    const part = chunk.subarray(0, HEAD_BYTES - this.#headFilled);
    this.#head.set(part, this.#headFilled);
    this.#headFilled += part.length;
    return part.length;
  }

  /** Returns the head if the frame is to be forwarded. */
  #beginFrame(): Uint8Array | undefined {
    const length = this.#head.readUInt32BE(0);
    if (length < LEAST_LENGTH || length > MAX_FRAME_BYTES) {
      throw new FrameError(`a frame of ${length} bytes is not legal`);
    }
    const flags = this.#head.readUInt8(LENGTH_BYTES + 4);
    if ((flags & SHUTDOWN) !== 0) throw new FrameError('a sandbox is stopped through the API');
    this.#headFilled = 0;
    this.#left = length - LEAST_LENGTH;
    const head = Uint8Array.from(this.#head);
    if ((flags & SESSION_START) === 0) return head;
    this.#held = [head];
    return undefined;
  }
}
