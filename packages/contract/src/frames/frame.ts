import { decode, encode } from 'cborg';
import { flagsOf } from './message-types.ts';

/** Protocol generation that we speak. */
export const GENERATION = 7;
/** Largest value of the length word: id, flags and body. */
export const MAX_FRAME_BYTES = 4 * 1024 * 1024;
const MIN_FRAME_BYTES = 5;
/** Length word, id and flags. */
export const FRAME_HEAD_BYTES = 9;

export type Payload = Readonly<Record<string, unknown>>;

/** One frame of the command channel, its envelope opened and its payload decoded. */
export interface Message {
  readonly id: number;
  readonly flags: number;
  readonly type: string;
  readonly payload: Payload;
}

/** The flags follow from the type, so a caller cannot get them wrong. */
export function encodeMessage(id: number, type: string, payload: Payload = {}): Buffer {
  const body = encode({ v: GENERATION, t: type, p: encode(payload) });
  const frame = Buffer.allocUnsafe(FRAME_HEAD_BYTES + body.length);
  if (body.length + MIN_FRAME_BYTES > MAX_FRAME_BYTES) {
    throw new RangeError(`a frame holds at most ${MAX_FRAME_BYTES} bytes, this one has ${body.length}`);
  }
  frame.writeUInt32BE(body.length + MIN_FRAME_BYTES, 0);
  frame.writeUInt32BE(id, 4);
  frame.writeUInt8(flagsOf(type), 8);
  frame.set(body, FRAME_HEAD_BYTES);
  return frame;
}

/** Thrown for bytes that are no frame; the connection they came from cannot be trusted any more. */
export class FrameError extends Error {}

/** Decodes one whole frame, length word included. */
export function decodeMessage(frame: Uint8Array): Message {
  const view = new DataView(frame.buffer, frame.byteOffset, frame.byteLength);
  try {
    const envelope: unknown = decode(frame.subarray(FRAME_HEAD_BYTES), DECODE_OPTIONS);
    if (!isRecord(envelope) || typeof envelope['t'] !== 'string' || !(envelope['p'] instanceof Uint8Array)) {
      throw new FrameError('the frame body is not an envelope {v, t, p}');
    }
    const payload: unknown = decode(envelope['p'], DECODE_OPTIONS);
    if (!isRecord(payload)) throw new FrameError(`the payload of ${envelope['t']} is not a map`);
    return { id: view.getUint32(4), flags: view.getUint8(8), type: envelope['t'], payload };
  } catch (error) {
    if (error instanceof FrameError) throw error;
    throw new FrameError('the frame body is not CBOR', { cause: error });
  }
}

const DECODE_OPTIONS = {
  allowBigInt: true,
  allowIndefinite: true,
  allowUndefined: true,
  rejectDuplicateMapKeys: true,
};

function isRecord(value: unknown): value is Record<string, unknown> {
  return (
    typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Uint8Array)
  );
}

/**
 * Cuts a byte stream into frames. Holds at most one incomplete frame, so a peer that never completes one
 * costs at most `MAX_FRAME_BYTES`.
 */
export class FrameSplitter {
  #parts: Uint8Array[] = [];
  #buffered = 0;

  /** @throws FrameError when the stream cannot be frames. */
  *push(chunk: Uint8Array): Generator<Uint8Array> {
    this.#parts.push(chunk);
    this.#buffered += chunk.length;
    for (;;) {
      const need = this.#frameLength();
      if (need === undefined || this.#buffered < need) return;
      yield this.#take(need);
    }
  }

  #frameLength(): number | undefined {
    if (this.#buffered < 4) return undefined;
    const head = this.#join(4);
    const length = new DataView(head.buffer, head.byteOffset, 4).getUint32(0);
    if (length < MIN_FRAME_BYTES || length > MAX_FRAME_BYTES)
      throw new FrameError(`a frame of ${length} bytes is not legal`);
    return length + 4;
  }

  /** The first `count` bytes as one view, without taking them. */
  #join(count: number): Uint8Array {
    const first = this.#parts[0];
    if (first !== undefined && first.length >= count) return first;
    const joined = Buffer.concat(this.#parts);
    this.#parts = [joined];
    return joined;
  }

  #take(count: number): Uint8Array {
    // Joining waits until the whole frame is there, so a large frame is copied once, not once per chunk.
    const first = this.#join(count);
    if (first.length === count) this.#parts.shift();
    else this.#parts[0] = first.subarray(count);
    this.#buffered -= count;
    return first.subarray(0, count);
  }
}
