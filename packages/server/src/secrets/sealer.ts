import {
  createCipheriv,
  createDecipheriv,
  createHash,
  createHmac,
  createSecretKey,
  hkdfSync,
  randomBytes,
  timingSafeEqual,
  type KeyObject,
} from 'node:crypto';
import type { SecretsKeys } from './secrets-key.ts';

const ALGORITHM = 'aes-256-gcm';
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const KEY_ID_LENGTH = 8;
const MARK_KEY_BYTES = 32;

/**
 * Encrypts secret values for the database. `context` names the value and its owner (for example `registry:<id>`); a text that was sealed
 * for one context does not open with another.
 */
export class Sealer {
  readonly #readKeys: () => SecretsKeys;

  /** The first key seals; all of them open, so that keys can be rotated, also while this is in use. */
  constructor(keys: SecretsKeys | (() => SecretsKeys)) {
    this.#readKeys = typeof keys === 'function' ? keys : () => keys;
  }

  seal(text: string, context: string): string {
    const [key] = this.#readKeys();
    const nonce = randomBytes(NONCE_BYTES);
    const cipher = createCipheriv(ALGORITHM, key, nonce).setAAD(Buffer.from(context));
    const sealed = Buffer.concat([nonce, cipher.update(text, 'utf8'), cipher.final(), cipher.getAuthTag()]);
    return `${keyIdOf(key)}.${sealed.toString('base64url')}`;
  }

  /** @throws when the key is not known, the text was changed, or it was sealed with another context. */
  open(sealed: string, context: string): string {
    const keyId = keyIdIn(sealed);
    const key = this.#readKeys().find((known) => keyIdOf(known) === keyId);
    if (key === undefined) {
      throw new Error(`a value was sealed with key ${keyId}, which is not in the key file`);
    }
    const bytes = Buffer.from(sealed.slice(KEY_ID_LENGTH + 1), 'base64url');
    const decipher = createDecipheriv(ALGORITHM, key, bytes.subarray(0, NONCE_BYTES), {
      authTagLength: TAG_BYTES,
    })
      .setAAD(Buffer.from(context))
      .setAuthTag(bytes.subarray(-TAG_BYTES));
    const text = decipher.update(bytes.subarray(NONCE_BYTES, -TAG_BYTES));
    return Buffer.concat([text, decipher.final()]).toString('utf8');
  }

  /** A keyed digest (MAC) that recognizes a text later without storing it: texts cannot be tried against it without the key. */
  mark(text: string, context: string): string {
    const [key] = this.#readKeys();
    return `${keyIdOf(key)}.${markWith(key, text, context)}`;
  }

  /** False also when its key was removed. */
  isMarkOf(mark: string, text: string, context: string): boolean {
    const key = this.#readKeys().find((known) => keyIdOf(known) === keyIdIn(mark));
    if (key === undefined) return false;
    const given = Buffer.from(mark.slice(KEY_ID_LENGTH + 1));
    const made = Buffer.from(markWith(key, text, context));
    return given.length === made.length && timingSafeEqual(given, made);
  }

  /** Whether it was sealed with another than the first key. */
  isStale(sealed: string): boolean {
    return keyIdIn(sealed) !== keyIdOf(this.#readKeys()[0]);
  }

  /** Whether the key that sealed it is known. */
  canOpen(sealed: string): boolean {
    return this.#readKeys().some((key) => keyIdOf(key) === keyIdIn(sealed));
  }
}

/** Uses a separate key, derived from the sealing key. */
function markWith(key: Uint8Array, text: string, context: string): string {
  return createHmac('sha256', markKeyOf(key, context)).update(text).digest('hex');
}

/**
 * Derived keys, cached as key objects, because making one costs five times as much as a mark, and every call with an idempotency key
 * needs one. The number of contexts is fixed by the code.
 */
const markKeys = new WeakMap<Uint8Array, Map<string, KeyObject>>();

function markKeyOf(key: Uint8Array, context: string): KeyObject {
  const known = markKeys.get(key) ?? new Map<string, KeyObject>();
  markKeys.set(key, known);
  const derived =
    known.get(context) ??
    createSecretKey(Buffer.from(hkdfSync('sha256', key, '', `svc mark ${context}`, MARK_KEY_BYTES)));
  known.set(context, derived);
  return derived;
}

/** Identifies a key without revealing it. */
function keyIdOf(key: Uint8Array): string {
  return createHash('sha256').update('svc key id').update(key).digest('hex').slice(0, KEY_ID_LENGTH);
}

function keyIdIn(sealed: string): string {
  return sealed.slice(0, KEY_ID_LENGTH);
}
