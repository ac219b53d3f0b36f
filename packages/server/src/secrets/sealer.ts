import { createCipheriv, createDecipheriv, createHash, randomBytes } from 'node:crypto';
import type { SecretsKeys } from './secrets-key.ts';

const ALGORITHM = 'aes-256-gcm';
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const KEY_ID_LENGTH = 8;

/**
 * Keeps secret values unreadable in the database. `context` says what the value is and whose (for example
 * `registry:<id>`); what was sealed for one place does not open at another.
 */
export class Sealer {
  readonly #readKeys: () => SecretsKeys;

  /** The first key seals; all of them open, so that keys can be replaced one after the other, also while this is in use. */
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

  /** @throws when the key is not known, the text was changed, or it was sealed for another place. */
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

  /** Whether a newer key should seal it again. */
  isStale(sealed: string): boolean {
    return keyIdIn(sealed) !== keyIdOf(this.#readKeys()[0]);
  }

  /** Whether the key that sealed it is at hand. */
  canOpen(sealed: string): boolean {
    return this.#readKeys().some((key) => keyIdOf(key) === keyIdIn(sealed));
  }
}

/** Tells keys apart without telling anything about them. */
function keyIdOf(key: Uint8Array): string {
  return createHash('sha256').update('svc key id').update(key).digest('hex').slice(0, KEY_ID_LENGTH);
}

function keyIdIn(sealed: string): string {
  return sealed.slice(0, KEY_ID_LENGTH);
}
