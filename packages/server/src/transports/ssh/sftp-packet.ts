/** Version 3 of the protocol, which OpenSSH uses: draft-ietf-secsh-filexfer-02. */
export const SFTP_VERSION = 3;
/** The same as OpenSSH's server. */
export const MAX_PACKET_BYTES = 256 * 1024;
const LENGTH_BYTES = 4;

export const REQUEST = {
  init: 1,
  open: 3,
  close: 4,
  read: 5,
  write: 6,
  lstat: 7,
  fstat: 8,
  setstat: 9,
  fsetstat: 10,
  opendir: 11,
  readdir: 12,
  remove: 13,
  mkdir: 14,
  rmdir: 15,
  realpath: 16,
  stat: 17,
  rename: 18,
  readlink: 19,
  symlink: 20,
  extended: 200,
} as const;

export const ANSWER = {
  version: 2,
  status: 101,
  handle: 102,
  data: 103,
  name: 104,
  attributes: 105,
  extended: 201,
} as const;

export const STATUS = {
  ok: 0,
  eof: 1,
  noSuchFile: 2,
  denied: 3,
  failure: 4,
  badMessage: 5,
  unsupported: 8,
} as const;

/** Input that is not a request; ends the session. */
export class SftpProtocolError extends Error {}

/** Splits bytes into packets: a length, and the content, which is yielded. */
export async function* splitPackets(source: AsyncIterable<Buffer>): AsyncGenerator<Buffer, void> {
  let held: Buffer[] = [];
  let heldBytes = 0;
  /** Number of bytes for the next packet, so that chunks are joined once per packet. */
  let neededBytes = LENGTH_BYTES;
  for await (const chunk of source) {
    held.push(chunk);
    heldBytes += chunk.length;
    if (heldBytes < neededBytes) continue;
    let bytes = Buffer.concat(held);
    for (;;) {
      neededBytes = LENGTH_BYTES + (bytes.length < LENGTH_BYTES ? 0 : lengthOf(bytes));
      if (bytes.length < neededBytes) break;
      yield bytes.subarray(LENGTH_BYTES, neededBytes);
      bytes = bytes.subarray(neededBytes);
    }
    held = bytes.length === 0 ? [] : [bytes];
    heldBytes = bytes.length;
  }
}

function lengthOf(bytes: Buffer): number {
  const length = bytes.readUInt32BE(0);
  if (length > 0 && length <= MAX_PACKET_BYTES) return length;
  throw new SftpProtocolError(`a packet of ${length} bytes`);
}

/** Reads the fields of a packet in order. */
export class PacketReader {
  readonly #packet: Buffer;
  #position: number;

  constructor(packet: Buffer, position = 0) {
    this.#packet = packet;
    this.#position = position;
  }

  get isAtEnd(): boolean {
    return this.#position >= this.#packet.length;
  }

  byte(): number {
    return this.#take(1).readUInt8(0);
  }

  uint32(): number {
    return this.#take(4).readUInt32BE(0);
  }

  /** Offsets and sizes; precise up to 2^53, which no file system here exceeds. */
  uint64(): number {
    const value = this.#take(8).readBigUInt64BE(0);
    if (value > BigInt(Number.MAX_SAFE_INTEGER)) throw new SftpProtocolError(`${value} is beyond every file`);
    return Number(value);
  }

  bytes(): Buffer {
    return this.#take(this.uint32());
  }

  text(): string {
    const text = this.bytes().toString('utf8');
    if (text.includes('\u0000')) throw new SftpProtocolError('a name with a zero byte');
    return text;
  }

  #take(length: number): Buffer {
    const end = this.#position + length;
    if (end > this.#packet.length) throw new SftpProtocolError('a packet that is cut off');
    const part = this.#packet.subarray(this.#position, end);
    this.#position = end;
    return part;
  }
}

/** A field of an answer: a 32-bit number, text or bytes with a length prefix, or raw bytes. */
export type Field = number | string | { readonly counted: Uint8Array } | { readonly raw: Uint8Array };

export function encodePacket(type: number, fields: readonly Field[]): Buffer {
  const body = Buffer.concat(fields.map(encodeField));
  const head = Buffer.alloc(5);
  head.writeUInt32BE(1 + body.length, 0);
  head.writeUInt8(type, 4);
  return Buffer.concat([head, body]);
}

export function uint64(value: number): { readonly raw: Uint8Array } {
  const raw = Buffer.alloc(8);
  raw.writeBigUInt64BE(BigInt(value));
  return { raw };
}

function encodeField(field: Field): Uint8Array {
  if (typeof field === 'number') {
    const bytes = Buffer.alloc(4);
    bytes.writeUInt32BE(field);
    return bytes;
  }
  if (typeof field === 'object' && 'raw' in field) return field.raw;
  const counted = typeof field === 'string' ? Buffer.from(field) : field.counted;
  const length = Buffer.alloc(4);
  length.writeUInt32BE(counted.length);
  return Buffer.concat([length, counted]);
}
