/** Iterates over the parts of a DNS message (RFC 1035 §4). A compression pointer must point backwards, so no message can cause a loop. */

export const HEADER_BYTES = 12;
const MAX_NAME_BYTES = 255;

export interface DnsRecord {
  readonly type: number;
  readonly class: number;
  readonly ttlSeconds: number;
  /** The whole record, owner name included. */
  readonly bytes: Buffer;
  readonly data: Buffer;
  /** Offsets of the owner name and the data in the message. */
  readonly start: number;
  readonly dataStart: number;
}

/** The records of one or more consecutive sections; null when the message is truncated. */
export function readRecords(
  message: Buffer,
  start: number,
  count: number,
): { readonly records: readonly DnsRecord[]; readonly end: number } | null {
  const records: DnsRecord[] = [];
  let offset = start;
  for (let index = 0; index < count; index += 1) {
    const fixed = skipName(message, offset);
    if (fixed === null || fixed + 10 > message.length) return null;
    const end = fixed + 10 + message.readUInt16BE(fixed + 8);
    if (end > message.length) return null;
    records.push({
      type: message.readUInt16BE(fixed),
      class: message.readUInt16BE(fixed + 2),
      ttlSeconds: message.readUInt32BE(fixed + 4),
      bytes: message.subarray(offset, end),
      data: message.subarray(fixed + 10, end),
      start: offset,
      dataStart: fixed + 10,
    });
    offset = end;
  }
  return { records, end: offset };
}

/** The offset behind a name, which ends with an empty label or a pointer; null when it is malformed. */
export function skipName(message: Buffer, start: number): number | null {
  let offset = start;
  while (offset - start <= MAX_NAME_BYTES) {
    const length = message[offset];
    if (length === undefined) return null;
    if (length === 0) return offset + 1;
    if (length >= 0xc0) return offset + 2 <= message.length ? offset + 2 : null;
    if (length > 63) return null;
    offset += length + 1;
  }
  return null;
}

/** A name without compression, in lower case with dots between labels; null when it is malformed or compressed, or a label holds a dot. */
export function readPlainName(
  message: Buffer,
  start: number,
): { readonly name: string; readonly end: number } | null {
  const end = skipName(message, start);
  if (end === null || end - start > MAX_NAME_BYTES || message[end - 1] !== 0) return null;
  const labels: string[] = [];
  let offset = start;
  for (;;) {
    const length = message[offset] ?? 0;
    if (length > 63) return null;
    if (length === 0) return { name: labels.join('.').toLowerCase(), end };
    const label = message.toString('latin1', offset + 1, offset + 1 + length);
    // As text this label would look like two, and a policy would judge another name than the resolver gets.
    if (label.includes('.')) return null;
    labels.push(label);
    offset += length + 1;
  }
}

/** A name that may be compressed, as `readPlainName` writes it; null when it is malformed, or longer than names are. */
export function readName(message: Buffer, start: number): string | null {
  const labels: string[] = [];
  let before = start;
  // Pointers count as steps too: a chain of them could run through the whole message.
  let steps = 0;
  for (let offset = start; steps <= MAX_NAME_BYTES;) {
    const length = message[offset];
    if (length === undefined) return null;
    if (length === 0) return labels.join('.').toLowerCase();
    if (length >= 0xc0) {
      if (offset + 2 > message.length) return null;
      const target = message.readUInt16BE(offset) & 0x3fff;
      if (target >= before) return null;
      before = target;
      offset = target;
      steps += 1;
    } else {
      const end = offset + 1 + length;
      const label = message.toString('latin1', offset + 1, end);
      if (length > 63 || end > message.length || label.includes('.')) return null;
      labels.push(label);
      steps += length + 1;
      offset = end;
    }
  }
  return null;
}
