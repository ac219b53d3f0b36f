import { encodeMessage, MAX_FRAME_BYTES, type Payload } from '@svc/contract/frames';
import type { RandomGenerator } from './random-generator.ts';

const ID_AT = 4;
const FLAGS_AT = 8;
const BODY_AT = 9;
/** The body is a map {v, t, p}; this is one of four. */
const MAP_OF_FOUR = 0xa4;
/** The key `t` a second time, with an empty text. */
const SECOND_TYPE = Uint8Array.of(0x61, 0x74, 0x60);
const DEPTH = 200;

const HOSTILE_VALUES: readonly unknown[] = [
  null,
  undefined,
  true,
  0,
  -1,
  0.5,
  2 ** 53,
  18_446_744_073_709_551_615n,
  -(2n ** 63n),
  Number.NaN,
  Number.POSITIVE_INFINITY,
  '',
  'x'.repeat(70_000),
  'a\u0000b',
  '../../etc/passwd',
  '\u202E\u001b[2J',
  [],
  {},
  [[null]],
  { __proto__: null, toString: 1 },
  new Uint8Array(0),
  new Uint8Array(70_000),
  Array.from({ length: 2000 }, () => 'x'),
  nested(),
];

/** The damage to a frame. A frame that is incomplete hides where the next one begins. */
export type FrameDamage = 'none' | 'payload' | 'head' | 'body' | 'length';

export interface MutatedFrame {
  readonly bytes: Uint8Array;
  readonly damage: FrameDamage;
}

/** A frame with one fault: mostly in a field of its payload, sometimes in its head, its envelope or its length. */
export function mutateFrame(id: number, type: string, payload: Payload, dice: RandomGenerator): MutatedFrame {
  const choice = dice.below(100);
  if (choice < 10) return { bytes: encodeMessage(id, type, payload), damage: 'none' };
  if (choice < 80) return { bytes: encodeMessage(id, type, mutatePayload(payload, dice)), damage: 'payload' };
  const bytes = Buffer.from(encodeMessage(id, type, payload));
  if (choice < 90) {
    if (dice.below(2) === 0) bytes.writeUInt8(dice.below(256), FLAGS_AT);
    else bytes.writeUInt32BE(dice.oneOf([0, 1, 0xffffffff]), ID_AT);
    return { bytes, damage: 'head' };
  }
  if (choice < 93) return { bytes: withSecondType(bytes), damage: 'body' };
  if (choice < 97) {
    bytes.writeUInt8(dice.below(256), BODY_AT + dice.below(bytes.length - BODY_AT));
    return { bytes, damage: 'body' };
  }
  bytes.writeUInt32BE(dice.oneOf([0, 4, bytes.length, MAX_FRAME_BYTES + 1, 0xffffffff]), 0);
  return { bytes, damage: 'length' };
}

function mutatePayload(payload: Payload, dice: RandomGenerator): Payload {
  const name = dice.oneOf([...Object.keys(payload), 'extra', '__proto__']);
  if (dice.below(6) === 0)
    return Object.fromEntries(Object.entries(payload).filter(([known]) => known !== name));
  const value = payload[name];
  // Recurses one level: names, sizes and other properties of a file are there.
  if (isRecord(value) && dice.below(3) > 0) return { ...payload, [name]: mutatePayload(value, dice) };
  return { ...payload, [name]: dice.oneOf(HOSTILE_VALUES) };
}

/** Two parsers may disagree about which of the two counts. */
function withSecondType(frame: Buffer): Uint8Array {
  const longer = Buffer.concat([frame, SECOND_TYPE]);
  longer.writeUInt8(MAP_OF_FOUR, BODY_AT);
  longer.writeUInt32BE(longer.length - 4, 0);
  return longer;
}

function isRecord(value: unknown): value is Payload {
  return (
    typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Uint8Array)
  );
}

function nested(): unknown {
  let value: unknown = 1;
  for (let level = 0; level < DEPTH; level++) value = [value];
  return value;
}
