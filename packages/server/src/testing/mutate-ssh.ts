import type { RandomGenerator } from './random-generator.ts';

/** One letter per field: `s` a length and so many bytes, `u` 32 bits, `l` 64 bits, `b` a byte, `c` a cookie of 16 bytes. */
const PACKETS: Readonly<Record<number, string>> = {
  5: 's',
  20: 'cssssssssssbu',
  21: '',
  30: 's',
  50: 'sssbsss',
  80: 'sbsu',
  90: 'suuususu',
  93: 'uu',
  94: 'us',
  95: 'uus',
  96: 'u',
  97: 'u',
  // After the name and the want-reply flag: the fields of a terminal, a variable, a command or a window size.
  98: 'usbsuuuus',
};
const SFTP: Readonly<Record<number, string>> = {
  1: 'u',
  3: 'usuu',
  4: 'us',
  5: 'uslu',
  6: 'usls',
  7: 'us',
  9: 'usuu',
  10: 'usuu',
  11: 'us',
  12: 'us',
  13: 'us',
  14: 'usu',
  15: 'us',
  16: 'us',
  17: 'us',
  18: 'uss',
  19: 'us',
  20: 'uss',
  200: 'us',
};
const CHANNEL_DATA = 94;
/** Type, channel, and the length of what follows. */
const DATA_AT = 9;
const WIDTHS = { u: 4, l: 8, b: 1, c: 16 } as const;
const HOSTILE_NUMBERS = [0, 1, 255, 0x7fffffff, 0x80000000, 0xfffffffe, 0xffffffff];
const HOSTILE_TEXTS = ['', 'x'.repeat(30_000), 'a\0b', '../../etc/passwd', '\u202e\u001b[2J', '%s%n', 'ü'];
const LARGEST_TYPE = 101;

/**
 * The payload of an SSH packet with one fault: mostly in a field of it, or of the SFTP request inside; sometimes in its type or its end.
 */
export function mutateSsh(payload: Buffer, dice: RandomGenerator): Buffer {
  if (payload[0] === CHANNEL_DATA && dice.below(4) > 0) return mutateSftp(payload, dice);
  const type = payload[0] ?? 0;
  return mutate(payload.subarray(0, 1), fieldsOf(payload.subarray(1), PACKETS[type] ?? ''), dice);
}

/** Keeps the envelope valid, so that the request inside is parsed. */
function mutateSftp(payload: Buffer, dice: RandomGenerator): Buffer {
  const inner = payload.subarray(DATA_AT);
  const layout = SFTP[inner[4] ?? 0];
  if (layout === undefined) return mutate(payload.subarray(0, 1), fieldsOf(payload.subarray(1), 'us'), dice);
  const request = mutate(inner.subarray(4, 5), fieldsOf(inner.subarray(5), layout), dice);
  const said = dice.below(8) === 0 ? dice.oneOf(HOSTILE_NUMBERS) : request.length;
  const data = Buffer.concat([numberOf(said), request]);
  return Buffer.concat([payload.subarray(0, 5), numberOf(data.length), data]);
}

function mutate(type: Buffer, fields: readonly Buffer[], dice: RandomGenerator): Buffer {
  const place = dice.below(Math.max(1, fields.length));
  const with_ = (...changed: readonly Buffer[]) =>
    Buffer.concat([type, ...fields.slice(0, place), ...changed, ...fields.slice(place + 1)]);
  const field = fields[place] ?? Buffer.alloc(0);
  const choice = dice.below(20);
  if (choice === 0) return with_();
  if (choice === 1) return with_(field, field);
  if (choice === 2) return Buffer.concat([type, ...fields.slice(0, place)]);
  if (choice === 3) return Buffer.concat([type, ...fields, randomOf(1 + dice.below(64), dice)]);
  if (choice === 4) return Buffer.concat([Buffer.of(dice.below(LARGEST_TYPE)), ...fields]);
  return with_(mutateField(field, dice));
}

/** Changes a text, if its first four bytes are its length; else a number or bytes. */
function mutateField(field: Buffer, dice: RandomGenerator): Buffer {
  const isText = field.length >= 4 && field.readUInt32BE(0) === field.length - 4;
  if (!isText) {
    if (field.length === 4) return numberOf(dice.oneOf([...HOSTILE_NUMBERS, field.readUInt32BE(0) ^ 1]));
    return randomOf(field.length, dice);
  }
  const content = field.subarray(4);
  if (dice.below(3) === 0)
    return Buffer.concat([numberOf(dice.oneOf([...HOSTILE_NUMBERS, content.length + 1])), content]);
  const other = dice.below(2) === 0 ? Buffer.from(dice.oneOf(HOSTILE_TEXTS)) : randomOf(content.length, dice);
  return Buffer.concat([numberOf(other.length), other]);
}

/** Splits bytes by the layout, which is that of the longest packet of its type; left-over bytes are one more field. */
function fieldsOf(bytes: Buffer, layout: string): Buffer[] {
  const fields: Buffer[] = [];
  let at = 0;
  for (const kind of layout) {
    const width = kind === 's' ? textWidth(bytes, at) : WIDTHS[kind as keyof typeof WIDTHS];
    if (width === null || at + width > bytes.length) break;
    fields.push(bytes.subarray(at, at + width));
    at += width;
  }
  return at < bytes.length ? [...fields, bytes.subarray(at)] : fields;
}

function textWidth(bytes: Buffer, at: number): number | null {
  return at + 4 <= bytes.length ? 4 + bytes.readUInt32BE(at) : null;
}

function numberOf(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value >>> 0);
  return bytes;
}

function randomOf(length: number, dice: RandomGenerator): Buffer {
  return Buffer.from(Array.from({ length }, () => dice.below(256)));
}
