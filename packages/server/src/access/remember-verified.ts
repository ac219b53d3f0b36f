import { hash } from 'node:crypto';

/** Some hundred bytes each. Beyond this the oldest entry is dropped and verified again at its next use. */
const MAX_REMEMBERED = 4096;

export interface Verified<Claims> {
  readonly claims: Claims;
  /** It is verified again from this time on; milliseconds since 1970, null: never. */
  readonly until: number | null;
}

/**
 * Caches verified signatures by key and token. Whether a signature is right does not change, but verifying takes a thread of the pool,
 * which a busy machine schedules late: 0.3 to 5 ms of every request. The store's state of the token is not cached here.
 */
export function rememberVerified<Claims>(
  verify: (signingKey: Uint8Array, token: string) => Promise<Verified<Claims>>,
): (signingKey: Uint8Array, token: string) => Promise<Claims> {
  const byKey = new WeakMap<Uint8Array, Map<string, Verified<Claims>>>();
  return async (signingKey, token) => {
    let known = byKey.get(signingKey);
    if (known === undefined) byKey.set(signingKey, (known = new Map()));
    // SAFETY: keyed by the token's hash, so that a memory dump reveals no tokens beyond those in use.
    const name = hash('sha256', token);
    const remembered = known.get(name);
    if (remembered !== undefined && (remembered.until === null || Date.now() < remembered.until))
      return remembered.claims;
    known.delete(name);
    const verified = await verify(signingKey, token);
    if (known.size >= MAX_REMEMBERED) known.delete(known.keys().next().value ?? '');
    known.set(name, verified);
    return verified.claims;
  };
}
