import { createHash, createPublicKey, type JsonWebKey } from 'node:crypto';
import { PlatformError } from '@svc/contract';

export interface PublicKey {
  /** `<type> <base64>`. */
  readonly line: string;
  /** As `ssh-keygen -l` shows it. */
  readonly fingerprint: string;
}

const MIN_RSA_BITS = 2048;
const MAX_RSA_BITS = 16_384;
const ED25519_BYTES = 32;

/** What is in a key of each type after its name, as the key that Node knows. */
const READERS: Readonly<Record<string, (fields: Fields) => JsonWebKey>> = {
  'ssh-ed25519': (fields) => {
    const x = fields.next();
    if (x.length !== ED25519_BYTES) throw new Error('it is not 32 bytes long');
    return { kty: 'OKP', crv: 'Ed25519', x: x.toString('base64url') };
  },
  'ecdsa-sha2-nistp256': (fields) => readPoint(fields, 'nistp256', 'P-256'),
  'ecdsa-sha2-nistp384': (fields) => readPoint(fields, 'nistp384', 'P-384'),
  'ecdsa-sha2-nistp521': (fields) => readPoint(fields, 'nistp521', 'P-521'),
  'ssh-rsa': (fields) => {
    const e = fields.next().toString('base64url');
    const modulus = fields.next();
    const bits = BigInt(`0x${modulus.toString('hex') || '0'}`).toString(2).length;
    if (bits < MIN_RSA_BITS || bits > MAX_RSA_BITS) {
      throw new Error(`RSA keys have ${MIN_RSA_BITS} to ${MAX_RSA_BITS} bits, this one has ${bits}`);
    }
    return { kty: 'RSA', e, n: (modulus[0] === 0 ? modulus.subarray(1) : modulus).toString('base64url') };
  },
};

/**
 * Reads a line of an OpenSSH .pub file; its comment is dropped.
 * @throws PlatformError `invalid_request` naming `public_key`
 */
export function parsePublicKey(text: string): PublicKey {
  if (text.includes('PRIVATE KEY')) {
    throw invalid('is a private key, which must stay secret; make a new pair, and send the .pub file');
  }
  const [type = '', base64 = ''] = text.trim().split(/[ \t]+/);
  const read = Object.hasOwn(READERS, type) ? READERS[type] : undefined;
  if (read === undefined || /[\r\n]/.test(text.trim())) {
    const types = Object.keys(READERS).join(', ');
    throw invalid(`must be one line of an OpenSSH .pub file that begins with one of ${types}`);
  }
  const blob = Buffer.from(base64, 'base64');
  try {
    const fields = new Fields(blob);
    if (fields.next().toString('latin1') !== type) throw new Error('its inside says another type');
    const key = read(fields);
    fields.end();
    // Throws when the point is not on the curve, for one.
    createPublicKey({ key, format: 'jwk' });
  } catch (error) {
    throw invalid(`is no key: ${error instanceof Error ? error.message : 'it cannot be read'}`);
  }
  return { line: `${type} ${blob.toString('base64')}`, fingerprint: fingerprintOf(blob) };
}

/** Of a key in the form that goes over the wire. */
export function fingerprintOf(blob: Uint8Array): string {
  return `SHA256:${createHash('sha256').update(blob).digest('base64').replace(/=+$/, '')}`;
}

/** The fields of a key: each one its length and its bytes. */
class Fields {
  readonly #blob: Buffer;
  #position = 0;

  constructor(blob: Buffer) {
    this.#blob = blob;
  }

  next(): Buffer {
    if (this.#position + 4 > this.#blob.length) throw new Error('it is cut off');
    const start = this.#position + 4;
    const end = start + this.#blob.readUInt32BE(this.#position);
    if (end > this.#blob.length) throw new Error('it is cut off');
    this.#position = end;
    return this.#blob.subarray(start, end);
  }

  end(): void {
    if (this.#position !== this.#blob.length) throw new Error('there is more behind its end');
  }
}

function readPoint(fields: Fields, name: string, crv: string): JsonWebKey {
  if (fields.next().toString('latin1') !== name) throw new Error('its inside says another curve');
  const point = fields.next();
  const size = (point.length - 1) / 2;
  if (point[0] !== 4 || !Number.isInteger(size)) throw new Error('its point is not in the long form');
  const x = point.subarray(1, 1 + size).toString('base64url');
  return { kty: 'EC', crv, x, y: point.subarray(1 + size).toString('base64url') };
}

function invalid(reason: string): PlatformError {
  const details = { field: 'public_key', reason };
  return new PlatformError('invalid_request', `public_key ${reason}`, { details });
}
