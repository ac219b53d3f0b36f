import { setTimeout as delay } from 'node:timers/promises';

interface Rate {
  readonly perSecond: number;
  /** Burst size. */
  readonly burst: number;
}

/** Like the limit of the packet filter for UDP. */
const OF_CLIENT: Rate = { perSecond: 200, burst: 400 };
/** For all sandboxes of one scope: a part of the resolver's capacity, so that one scope cannot use all of it. */
const OF_SCOPE: Rate = { perSecond: 2000, burst: 4000 };
const MAX_REMEMBERED = 4096;

/**
 * Token buckets for queries. Over TCP a client over its rate waits, since many queries fit into a packet and the packet filter cannot count
 * them; over UDP the packet filter limits each client, and queries over the limit of the scope are dropped here unread.
 */
export class QueryRateLimit {
  readonly #scopeOf: (client: string) => string;
  readonly #clients = new TokenBuckets(OF_CLIENT);
  readonly #scopes = new TokenBuckets(OF_SCOPE);

  constructor(scopeOf: (client: string) => string) {
    this.#scopeOf = scopeOf;
  }

  /** Resolves when the client may send its next query over TCP. */
  async waitForToken(client: string): Promise<void> {
    const waitMs = Math.max(this.#clients.spend(client), this.#scopes.spend(this.#scopeOf(client)));
    if (waitMs > 0) await delay(waitMs, undefined, { ref: false });
  }

  /** False when a query over UDP is over the limit. */
  tryTake(client: string): boolean {
    const scope = this.#scopeOf(client);
    // A dropped query takes no token.
    return !this.#scopes.isEmpty(scope) && this.#scopes.spend(scope) === 0;
  }
}

class TokenBuckets {
  readonly #rate: Rate;
  /** The time up to which the tokens of each bucket are spent; in the future when it is empty. */
  readonly #spentUntil = new Map<string, number>();

  constructor(rate: Rate) {
    this.#rate = rate;
  }

  isEmpty(name: string): boolean {
    return (this.#spentUntil.get(name) ?? -Infinity) > performance.now();
  }

  /** @returns milliseconds until the taken token is available */
  spend(name: string): number {
    const { perSecond, burst } = this.#rate;
    const now = performance.now();
    const intervalMs = 1000 / perSecond;
    const full = now - burst * intervalMs;
    const spent = Math.max(this.#spentUntil.get(name) ?? full, full) + intervalMs;
    this.#spentUntil.set(name, spent);
    if (this.#spentUntil.size > MAX_REMEMBERED) this.#forget(full);
    return Math.max(0, spent - now);
  }

  /** A full bucket equals a missing one, so it is deleted. */
  #forget(before: number): void {
    for (const [name, spent] of this.#spentUntil) if (spent < before) this.#spentUntil.delete(name);
  }
}
