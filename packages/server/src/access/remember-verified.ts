import { hash } from 'node:crypto';

/** Some hundred bytes each. Who has more in use than these has the oldest judged again. */
const MAX_REMEMBERED = 4096;

export interface Verified<Claims> {
  readonly claims: Claims;
  /** From then on it is judged again; milliseconds since 1970, null: never. */
  readonly until: number | null;
}

/**
 * Whether a signature is right does not change, but to find out takes a thread of the pool, which a busy machine gives late: 0.3 to
 * 5 ms of every request. So it is asked once per key and token. What a store says about the token is not remembered here.
 */
export function rememberVerified<Claims>(
  verify: (signingKey: Uint8Array, token: string) => Promise<Verified<Claims>>,
): (signingKey: Uint8Array, token: string) => Promise<Claims> {
  const byKey = new WeakMap<Uint8Array, Map<string, Verified<Claims>>>();
  return async (signingKey, token) => {
    let known = byKey.get(signingKey);
    if (known === undefined) byKey.set(signingKey, (known = new Map()));
    // SAFETY: the token itself is not kept, so that no dump of memory tells more of them than those in use.
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
