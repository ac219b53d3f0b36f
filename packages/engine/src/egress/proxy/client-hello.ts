/** The fields of a TLS ClientHello that are used. */
export interface ClientHello {
  /** Lower case, without a trailing dot; null without the extension. */
  readonly serverName: string | null;
  readonly protocols: readonly string[];
  /** The client hides another name behind this one, or wants to look as if it did. */
  readonly hasEncryptedHello: boolean;
}

export type ReadClientHello =
  | { readonly kind: 'hello'; readonly hello: ClientHello }
  | { readonly kind: 'incomplete' }
  | { readonly kind: 'malformed' };

export const HANDSHAKE_RECORD = 22;
const CLIENT_HELLO = 1;
const EXTENSION = { serverName: 0, protocols: 16, encryptedHello: 0xfe0d } as const;
const RECORD_HEADER_BYTES = 5;
const MESSAGE_HEADER_BYTES = 4;
/** More than any client sends; keys that withstand quantum computers take some kilobytes. */
const MAX_HELLO_BYTES = 64 * 1024;
const NAME = /^[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?)*$/;
const MAX_NAME_LENGTH = 253;

/** Reads the first message of TLS from bytes that begin with a record; it may be spread over several. RFC 8446, 4.1.2. */
export function readClientHello(bytes: Buffer): ReadClientHello {
  const message = joinRecords(bytes);
  if (message === null) return { kind: 'malformed' };
  if (message.length < MESSAGE_HEADER_BYTES) return { kind: 'incomplete' };
  if (message[0] !== CLIENT_HELLO) return { kind: 'malformed' };
  const length = message.readUIntBE(1, 3);
  if (length > MAX_HELLO_BYTES) return { kind: 'malformed' };
  if (message.length < MESSAGE_HEADER_BYTES + length) return { kind: 'incomplete' };
  try {
    return {
      kind: 'hello',
      hello: readHello(message.subarray(MESSAGE_HEADER_BYTES, MESSAGE_HEADER_BYTES + length)),
    };
  } catch {
    // A length inside points beyond the end, or the name is none.
    return { kind: 'malformed' };
  }
}

/** The handshake bytes of all records that are whole; null when something else is among them. */
function joinRecords(bytes: Buffer): Buffer | null {
  const parts: Buffer[] = [];
  for (let offset = 0; offset < bytes.length;) {
    if (bytes[offset] !== HANDSHAKE_RECORD) return null;
    if (offset + RECORD_HEADER_BYTES > bytes.length) break;
    if (bytes[offset + 1] !== 3) return null;
    const end = offset + RECORD_HEADER_BYTES + bytes.readUInt16BE(offset + 3);
    parts.push(bytes.subarray(offset + RECORD_HEADER_BYTES, end));
    if (parts[0]?.[0] === CLIENT_HELLO && isWhole(parts)) break;
    if (end > bytes.length) break;
    offset = end;
  }
  return parts.length === 1 ? (parts[0] ?? null) : Buffer.concat(parts);
}

function isWhole(parts: readonly Buffer[]): boolean {
  const message = Buffer.concat(parts);
  return (
    message.length >= MESSAGE_HEADER_BYTES &&
    message.length >= MESSAGE_HEADER_BYTES + message.readUIntBE(1, 3)
  );
}

function readHello(message: Buffer): ClientHello {
  const reader = new Reader(message);
  reader.skip(2 + 32); // Version and random bytes.
  reader.skip(reader.number(1)); // Session.
  reader.skip(reader.number(2)); // Ciphers.
  reader.skip(reader.number(1)); // Compressions.
  let serverName: string | null = null;
  let protocols: readonly string[] = [];
  let hasEncryptedHello = false;
  const extensions = reader.isAtEnd ? reader : new Reader(reader.take(reader.number(2)));
  const seen = new Set<number>();
  while (!extensions.isAtEnd) {
    const type = extensions.number(2);
    const body = extensions.take(extensions.number(2));
    // Twice the same could be read one way here and another way there.
    if (seen.has(type)) throw new Error('An extension is repeated');
    seen.add(type);
    if (type === EXTENSION.serverName) serverName = readServerName(body);
    if (type === EXTENSION.protocols) protocols = readProtocols(body);
    if (type === EXTENSION.encryptedHello) hasEncryptedHello = true;
  }
  return { serverName, protocols, hasEncryptedHello };
}

function readServerName(body: Buffer): string {
  const list = new Reader(new Reader(body).takeCounted(2));
  if (list.number(1) !== 0) throw new Error('Not a host name');
  const name = list.takeCounted(2).toString('latin1').toLowerCase().replace(/\.$/, '');
  if (!list.isAtEnd || name.length > MAX_NAME_LENGTH || !NAME.test(name))
    throw new Error('Not one host name');
  return name;
}

function readProtocols(body: Buffer): readonly string[] {
  const list = new Reader(new Reader(body).takeCounted(2));
  const protocols: string[] = [];
  while (!list.isAtEnd) protocols.push(list.takeCounted(1).toString('latin1'));
  return protocols;
}

/** Walks through bytes; throws when they end too early. */
class Reader {
  readonly #bytes: Buffer;
  #offset = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  get isAtEnd(): boolean {
    return this.#offset === this.#bytes.length;
  }

  number(size: 1 | 2): number {
    return this.take(size).readUIntBE(0, size);
  }

  take(length: number): Buffer {
    if (this.#offset + length > this.#bytes.length) throw new Error('Cut short');
    this.#offset += length;
    return this.#bytes.subarray(this.#offset - length, this.#offset);
  }

  takeCounted(size: 1 | 2): Buffer {
    return this.take(this.number(size));
  }

  skip(length: number): void {
    this.take(length);
  }
}
