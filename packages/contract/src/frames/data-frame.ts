import { bytesHeadSize, envelopePrefix, FRAME_HEAD_BYTES, openFrame, writeBytesHead } from './envelope.ts';

/**
 * Encodes a frame whose payload is exactly `{data}` without going through the CBOR library: these frames carry
 * all bulk traffic.
 */
export function encodeDataFrame(id: number, type: string, data: Uint8Array): Uint8Array {
  const keyAndHead = DATA_KEY.length + bytesHeadSize(data.length);
  const { frame, view, payloadStart } = openFrame(id, type, keyAndHead + data.length);
  frame.set(DATA_KEY, payloadStart);
  writeBytesHead(view, payloadStart + DATA_KEY.length, data.length);
  frame.set(data, payloadStart + keyAndHead);
  return frame;
}

/** Body of a data frame. `data` is a view into the frame, not a copy. */
export interface DataFrameBody {
  readonly type: string;
  readonly generation: number;
  readonly data: Uint8Array;
}

/**
 * Decodes the one byte layout that encoders use for data frames. Returns undefined for any other layout, valid or not: the
 * caller then uses the general decoder.
 */
export function decodeDataFrame(frame: Uint8Array): DataFrameBody | undefined {
  // {v: generation, t: …, p: …}: map(3), "v", uint below 24, "t", text head.
  if (frame[9] !== 0xa3 || frame[10] !== 0x61 || frame[11] !== 0x76) return undefined;
  if (frame[13] !== 0x61 || frame[14] !== 0x74) return undefined;
  const generation = frame[12] ?? 0xff;
  if (generation > 23) return undefined;
  const type = matchType(frame);
  if (type === undefined) return undefined;
  const payload = readBytesHead(frame, TYPE_START + type.length + 2);
  if (payload === undefined) return undefined;
  for (let index = 0; index < DATA_KEY.length; index++) {
    if (frame[payload.start + index] !== DATA_KEY[index]) return undefined;
  }
  const data = readBytesHead(frame, payload.start + DATA_KEY.length);
  if (data === undefined) return undefined;
  return { type, generation, data: frame.subarray(data.start) };
}

const DATA_TYPES = [
  'core.exec.stdout',
  'core.exec.stderr',
  'core.exec.stdin',
  'core.fs.data',
  'core.tcp.data',
  'svc.udp.data',
];
/** map(1), "data". */
const DATA_KEY = Uint8Array.of(0xa1, 0x64, 0x64, 0x61, 0x74, 0x61);
/** Where the characters of the type begin when the envelope is laid out as every encoder does. */
const TYPE_START = 16;

/** The envelope from the type's text head on, which is what differs between types. */
const TAILS = DATA_TYPES.map((type) => ({
  type,
  bytes: envelopePrefix(type).subarray(TYPE_START - 1 - FRAME_HEAD_BYTES),
}));

function matchType(frame: Uint8Array): string | undefined {
  for (const tail of TAILS) {
    if (startsWith(frame, TYPE_START - 1, tail.bytes)) return tail.type;
  }
  return undefined;
}

function startsWith(frame: Uint8Array, start: number, expected: Uint8Array): boolean {
  for (let index = 0; index < expected.length; index++) {
    if (frame[start + index] !== expected[index]) return false;
  }
  return true;
}

/** Start of a byte string that ends exactly where the frame ends. */
function readBytesHead(frame: Uint8Array, position: number): { start: number } | undefined {
  const head = frame[position];
  if (head === undefined || head < 0x40 || head > 0x5a) return undefined;
  const extraBytes = head < 0x58 ? 0 : 1 << (head - 0x58);
  let length = head - 0x40;
  if (extraBytes > 0) {
    length = 0;
    for (let index = 1; index <= extraBytes; index++) length = length * 256 + (frame[position + index] ?? 0);
  }
  const start = position + 1 + extraBytes;
  return start + length === frame.length ? { start } : undefined;
}
