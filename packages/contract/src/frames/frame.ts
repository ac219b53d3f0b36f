import { decode, encode, Tokenizer } from 'cborg';
import type { DecodeOptions } from 'cborg';
import { decodeDataFrame, encodeDataFrame } from './data-frame.ts';
import { FRAME_HEAD_BYTES, openFrame } from './envelope.ts';
import { FrameError } from './frame-error.ts';

/** Largest value of the length word: id, flags and body. */
export const MAX_FRAME_BYTES = 4 * 1024 * 1024;
/** Largest number of values in one frame. A hostile frame of 4 MiB could hold four million, each an object for us. */
const MAX_VALUES = 512 * 1024;
const MAX_ID = 0xffffffff;

export type Payload = Readonly<Record<string, unknown>>;

/** One frame of the command channel, with envelope and payload decoded. */
export interface Message {
  readonly id: number;
  readonly flags: number;
  /** Protocol generation that the sender speaks. */
  readonly generation: number;
  readonly type: string;
  /** Byte strings may be views into the frame. */
  readonly payload: Payload;
}

/**
 * The flags follow from the type, so a caller cannot get them wrong.
 * @throws RangeError when the frame would be too large or the id is none.
 */
export function encodeMessage(id: number, type: string, payload: Payload = {}): Uint8Array {
  if (!Number.isInteger(id) || id < 0 || id > MAX_ID) throw new RangeError(`${id} is no frame id`);
  const data = onlyData(payload);
  const frame = data ? encodeDataFrame(id, type, data) : encodeAnyFrame(id, type, payload);
  if (frame.length - 4 > MAX_FRAME_BYTES) {
    throw new RangeError(`a frame holds at most ${MAX_FRAME_BYTES} bytes, this one has ${frame.length - 4}`);
  }
  return frame;
}

/**
 * Decodes one whole frame, length word included.
 * @throws FrameError
 */
export function decodeMessage(frame: Uint8Array): Message {
  const { id, flags } = readFrameHead(frame);
  const bulk = decodeDataFrame(frame);
  if (bulk !== undefined) {
    return { id, flags, generation: bulk.generation, type: bulk.type, payload: { data: bulk.data } };
  }
  const envelope = decodeItem(frame.subarray(FRAME_HEAD_BYTES));
  if (!isRecord(envelope) || typeof envelope['t'] !== 'string' || !(envelope['p'] instanceof Uint8Array)) {
    throw new FrameError('the frame body is not an envelope {v, t, p}');
  }
  const generation = envelope['v'];
  if (typeof generation !== 'number' || !Number.isInteger(generation) || generation < 0) {
    throw new FrameError('the envelope has no protocol generation');
  }
  const payload = decodeItem(envelope['p']);
  if (!isRecord(payload)) throw new FrameError('the payload is not a map');
  return { id, flags, generation, type: envelope['t'], payload };
}

/**
 * Id and flags of a whole frame, its body left closed.
 * @throws FrameError
 */
export function readFrameHead(frame: Uint8Array): { readonly id: number; readonly flags: number } {
  if (frame.length < FRAME_HEAD_BYTES) throw new FrameError(`${frame.length} bytes are no frame`);
  const view = new DataView(frame.buffer, frame.byteOffset, frame.byteLength);
  if (view.getUint32(0) !== frame.length - 4)
    throw new FrameError('the length word does not match the frame');
  return { id: view.getUint32(4), flags: view.getUint8(8) };
}

function onlyData(payload: Payload): Uint8Array | undefined {
  const data = payload['data'];
  return data instanceof Uint8Array && Object.keys(payload).length === 1 ? data : undefined;
}

function encodeAnyFrame(id: number, type: string, payload: Payload): Uint8Array {
  const bytes = encode(payload);
  const { frame, payloadStart } = openFrame(id, type, bytes.length);
  frame.set(bytes, payloadStart);
  return frame;
}

function decodeItem(bytes: Uint8Array): unknown {
  try {
    return decode(bytes, { ...DECODE_OPTIONS, tokenizer: countedTokenizer(bytes) });
  } catch (error) {
    if (error instanceof FrameError) throw error;
    // Every error of the decoder, a stack overflow included, is caused by the bytes.
    throw new FrameError('the frame body is not CBOR', { cause: error });
  }
}

const DECODE_OPTIONS = {
  allowBigInt: true,
  allowIndefinite: true,
  allowUndefined: true,
  rejectDuplicateMapKeys: true,
};

function countedTokenizer(bytes: Uint8Array): NonNullable<DecodeOptions['tokenizer']> {
  // A plain view: the decoder slices, and a slice of a Node Buffer would not be a copy.
  const plain = new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const inner = new Tokenizer(plain, DECODE_OPTIONS);
  let values = 0;
  return {
    done: () => inner.done(),
    pos: () => inner.pos(),
    next: () => {
      values += 1;
      if (values > MAX_VALUES) throw new FrameError(`a frame holds at most ${MAX_VALUES} values`);
      return inner.next();
    },
  };
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return (
    typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Uint8Array)
  );
}
