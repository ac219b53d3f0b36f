import { FRAME_OVERHEAD_BYTES } from './envelope.ts';
import { FrameError } from './frame-error.ts';
import { MAX_FRAME_BYTES } from './frame.ts';

const LENGTH_BYTES = 4;

/**
 * Cuts a byte stream into frames.
 * - Every frame is copied once, into memory of its own size. So a chunk can be reused as soon as the iteration is over,
 *   and a frame that is kept keeps no other memory alive.
 * - Holds at most one incomplete frame, so a peer that never completes one costs at most `MAX_FRAME_BYTES`.
 * - After a FrameError there is no way to find the next frame: every later `push` throws it again.
 */
export class FrameSplitter {
  /** First bytes of a frame whose length is not yet known. */
  readonly #head = new Uint8Array(LENGTH_BYTES);
  #headFilled = 0;
  /** The incomplete frame, and how much of it is there. */
  #partial: Uint8Array | undefined;
  #filled = 0;
  #broken: FrameError | undefined;

  /**
   * Iterate to the end: frames left in the iterator are lost.
   * @throws FrameError when the stream cannot be frames; frames before the bad place are yielded first.
   */
  *push(chunk: Uint8Array): Generator<Uint8Array> {
    if (this.#broken) throw this.#broken;
    let position = this.#completePartial(chunk);
    if (this.#partial === undefined && this.#headFilled > 0) position = this.#completeHead(chunk, position);
    const completed = this.#takeCompleted();
    if (completed) yield completed;
    while (chunk.length - position >= LENGTH_BYTES && this.#partial === undefined) {
      const end = position + this.#frameLength(chunk, position);
      if (end > chunk.length) break;
      const frame = new Uint8Array(chunk.subarray(position, end));
      position = end;
      yield frame;
    }
    this.#keep(chunk, position);
  }

  /** Moves what belongs to the incomplete frame out of the chunk; returns how much that was. */
  #completePartial(chunk: Uint8Array): number {
    if (this.#partial === undefined) return 0;
    const count = Math.min(this.#partial.length - this.#filled, chunk.length);
    this.#partial.set(chunk.subarray(0, count), this.#filled);
    this.#filled += count;
    return count;
  }

  /** The chunk before ended inside a length word: finish the word, and as much of its frame as there is. */
  #completeHead(chunk: Uint8Array, start: number): number {
    let position = start;
    while (this.#headFilled < LENGTH_BYTES && position < chunk.length) {
      this.#head[this.#headFilled++] = chunk[position++] ?? 0;
    }
    if (this.#headFilled < LENGTH_BYTES) return position;
    this.#headFilled = 0;
    this.#partial = new Uint8Array(this.#frameLength(this.#head, 0));
    this.#partial.set(this.#head);
    this.#filled = LENGTH_BYTES;
    return position + this.#completePartial(chunk.subarray(position));
  }

  #takeCompleted(): Uint8Array | undefined {
    const frame = this.#partial;
    if (frame === undefined || this.#filled < frame.length) return undefined;
    this.#partial = undefined;
    return frame;
  }

  /** Copies the rest of a chunk, which is the beginning of a frame. */
  #keep(chunk: Uint8Array, position: number): void {
    const rest = chunk.subarray(position);
    if (rest.length === 0) return;
    if (rest.length < LENGTH_BYTES) {
      this.#head.set(rest);
      this.#headFilled = rest.length;
      return;
    }
    this.#partial = new Uint8Array(this.#frameLength(rest, 0));
    this.#partial.set(rest);
    this.#filled = rest.length;
  }

  /** Of the frame at `position`, length word included. */
  #frameLength(bytes: Uint8Array, position: number): number {
    const length = new DataView(bytes.buffer, bytes.byteOffset + position, LENGTH_BYTES).getUint32(0);
    if (length < FRAME_OVERHEAD_BYTES || length > MAX_FRAME_BYTES) {
      this.#broken = new FrameError(`a frame of ${length} bytes is not legal`);
      throw this.#broken;
    }
    return length + LENGTH_BYTES;
  }
}
