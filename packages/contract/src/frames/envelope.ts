import { flagsOf } from './message-types.ts';

/** Protocol generation that we speak. */
export const GENERATION = 7;
/** Length word, id and flags. */
export const FRAME_HEAD_BYTES = 9;
/** Id and flags: what the length word counts beside the body. */
export const FRAME_OVERHEAD_BYTES = 5;
const MAX_TYPE_BYTES = 255;

/** A frame that is complete except for its payload. */
export interface OpenFrame {
  readonly frame: Uint8Array;
  readonly view: DataView;
  readonly payloadStart: number;
}

/**
 * Allocates a frame and writes all of it that surrounds the payload: head and {v, t, p} in this order, which is how
 * every peer lays it out.
 */
export function openFrame(id: number, type: string, payloadBytes: number): OpenFrame {
  const prefix = cachedPrefix(type);
  const payloadStart = FRAME_HEAD_BYTES + prefix.length + bytesHeadSize(payloadBytes);
  const frame = new Uint8Array(payloadStart + payloadBytes);
  const view = new DataView(frame.buffer);
  view.setUint32(0, frame.length - 4);
  view.setUint32(4, id);
  view.setUint8(8, flagsOf(type));
  frame.set(prefix, FRAME_HEAD_BYTES);
  writeBytesHead(view, FRAME_HEAD_BYTES + prefix.length, payloadBytes);
  return { frame, view, payloadStart };
}

const MAX_CACHED_PREFIXES = 64;
const PREFIXES = new Map<string, Uint8Array>();

function cachedPrefix(type: string): Uint8Array {
  const cached = PREFIXES.get(type);
  if (cached) return cached;
  const prefix = envelopePrefix(type);
  if (PREFIXES.size < MAX_CACHED_PREFIXES) PREFIXES.set(type, prefix);
  return prefix;
}

/** Everything of the body before the length of `p`. */
export function envelopePrefix(type: string): Uint8Array {
  const text = new TextEncoder().encode(type);
  if (text.length > MAX_TYPE_BYTES) throw new RangeError(`a type has at most ${MAX_TYPE_BYTES} bytes`);
  const head = text.length < 24 ? [0x60 + text.length] : [0x78, text.length];
  return Uint8Array.of(0xa3, 0x61, 0x76, GENERATION, 0x61, 0x74, ...head, ...text, 0x61, 0x70);
}

/** Size of what CBOR writes before the bytes of a byte string. */
export function bytesHeadSize(length: number): number {
  if (length < 24) return 1;
  if (length < 0x100) return 2;
  return length < 0x10000 ? 3 : 5;
}

export function writeBytesHead(view: DataView, position: number, length: number): void {
  switch (bytesHeadSize(length)) {
    case 1:
      view.setUint8(position, 0x40 + length);
      break;
    case 2:
      view.setUint8(position, 0x58);
      view.setUint8(position + 1, length);
      break;
    case 3:
      view.setUint8(position, 0x59);
      view.setUint16(position + 1, length);
      break;
    default:
      view.setUint8(position, 0x5a);
      view.setUint32(position + 1, length);
  }
}
