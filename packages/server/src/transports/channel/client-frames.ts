import { FrameError, MAX_FRAME_BYTES } from '@svc/contract/frames';

const LENGTH_BYTES = 4;
const HEAD_BYTES = 9;
/** Id and flags, which the length word counts beside the body. */
const LEAST_LENGTH = 5;
const SESSION_START = 2;
const SHUTDOWN = 4;

/** What a client sent, in order: bytes to pass on as they are, or one whole frame that begins a session. */
export type ClientPiece =
  | { readonly kind: 'bytes'; readonly bytes: Uint8Array }
  | { readonly kind: 'session'; readonly bytes: Uint8Array };

/**
 * Follows the frames in a client's bytes without opening them. Only frames that begin a session are held back until they
 * are whole, which costs at most one frame; everything else passes through unbuffered. What svc-init does depends on flags
 * that fit the type, so a process cannot begin with any other frame.
 */
export class ClientFrames {
  readonly #head = Buffer.alloc(HEAD_BYTES);
  #headFilled = 0;
  /** Bytes of the current frame's body that are still to come. */
  #left = 0;
  /** The parts of a session's first frame; undefined while other frames pass. */
  #held: Uint8Array[] | undefined;

  /** @throws FrameError when this cannot be frames, or is one that clients may not send */
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

  /** Returns the head when it is to be passed on. */
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
