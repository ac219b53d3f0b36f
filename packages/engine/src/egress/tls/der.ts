/** Writes and reads the few forms of ASN.1 DER (X.690) that certificates are made of. */

const TAG = {
  boolean: 0x01,
  integer: 0x02,
  bitString: 0x03,
  octetString: 0x04,
  null: 0x05,
  oid: 0x06,
  utf8String: 0x0c,
  utcTime: 0x17,
  generalizedTime: 0x18,
  sequence: 0x30,
  set: 0x31,
} as const;

export function element(tag: number, ...contents: readonly Uint8Array[]): Buffer {
  const content = Buffer.concat(contents);
  if (content.length < 0x80) return Buffer.concat([Buffer.from([tag, content.length]), content]);
  const length = Buffer.alloc(4);
  length.writeUInt32BE(content.length);
  const digits = length.subarray(length.findIndex((byte) => byte !== 0));
  return Buffer.concat([Buffer.from([tag, 0x80 | digits.length]), digits, content]);
}

export const sequence = (...contents: readonly Uint8Array[]) => element(TAG.sequence, ...contents);
export const set = (...contents: readonly Uint8Array[]) => element(TAG.set, ...contents);
export const octets = (...contents: readonly Uint8Array[]) => element(TAG.octetString, ...contents);
export const text = (value: string) => element(TAG.utf8String, Buffer.from(value));
export const boolean = (value: boolean) => element(TAG.boolean, Buffer.from([value ? 0xff : 0]));
export const nothing = () => element(TAG.null);
/** `unused` counts the bits at the end that mean nothing. */
export const bits = (bytes: Uint8Array, unused = 0) => element(TAG.bitString, Buffer.from([unused]), bytes);
/** A positive number, most significant byte first. */
export const integer = (bytes: Uint8Array) =>
  element(TAG.integer, (bytes[0] ?? 0) >= 0x80 ? Buffer.from([0]) : Buffer.alloc(0), bytes);
/** An element with a context-specific tag: `[number]` in ASN.1. */
export const tagged = (number: number, ...contents: readonly Uint8Array[]) =>
  element(0xa0 | number, ...contents);

export function oid(dotted: string): Buffer {
  const [first = 0, second = 0, ...rest] = dotted.split('.').map(Number);
  const bytes = [first * 40 + second, ...rest].flatMap((part) => {
    const septets = [part & 0x7f];
    for (let left = part >>> 7; left > 0; left >>>= 7) septets.unshift((left & 0x7f) | 0x80);
    return septets;
  });
  return element(TAG.oid, Buffer.from(bytes));
}

/** Two digits for the year until 2049, four from then on; RFC 5280 has it so. */
export function time(at: Date): Buffer {
  const digits = at.toISOString().replaceAll(/[-:T]|\.\d+/g, '');
  return at.getUTCFullYear() < 2050
    ? element(TAG.utcTime, Buffer.from(digits.slice(2)))
    : element(TAG.generalizedTime, Buffer.from(digits));
}

export interface Element {
  readonly tag: number;
  /** With tag and length. */
  readonly whole: Buffer;
  readonly content: Buffer;
}

/** The elements that follow each other in `bytes`. @throws Error when they are cut short. */
export function readElements(bytes: Buffer): readonly Element[] {
  const elements: Element[] = [];
  for (let offset = 0; offset < bytes.length;) {
    const short = bytes.readUInt8(offset + 1);
    const digits = short < 0x80 ? 0 : short & 0x7f;
    const length = digits === 0 ? short : bytes.readUIntBE(offset + 2, digits);
    const start = offset + 2 + digits;
    if (start + length > bytes.length) throw new Error('An element is cut short');
    elements.push({
      tag: bytes.readUInt8(offset),
      whole: bytes.subarray(offset, start + length),
      content: bytes.subarray(start, start + length),
    });
    offset = start + length;
  }
  return elements;
}
