import { setTimeout as delay } from 'node:timers/promises';

interface Rate {
  readonly perSecond: number;
  /** At once, after a pause. */
  readonly burst: number;
}

/** As many as the packet filter lets it ask over UDP. */
const OF_CLIENT: Rate = { perSecond: 200, burst: 400 };
/** Of all sandboxes of one scope: a part of what the resolver answers, so that many sandboxes of one do not keep it from the others. */
const OF_SCOPE: Rate = { perSecond: 2000, burst: 4000 };
const MAX_REMEMBERED = 4096;

/**
 * How many questions are read. Over TCP a client that asks more waits, since many fit into a packet and the packet filter cannot count
 * them; over UDP the packet filter counts those of a client, and those of a scope that are too many are dropped here unread.
 */
export class QuestionRates {
  readonly #scopeOf: (client: string) => string;
  readonly #clients = new TokenBuckets(OF_CLIENT);
  readonly #scopes = new TokenBuckets(OF_SCOPE);

  constructor(scopeOf: (client: string) => string) {
    this.#scopeOf = scopeOf;
  }

  /** Returns when the client may ask its next question over TCP. */
  async turn(client: string): Promise<void> {
    const waitMs = Math.max(this.#clients.spend(client), this.#scopes.spend(this.#scopeOf(client)));
    if (waitMs > 0) await delay(waitMs, undefined, { ref: false });
  }

  /** False when a question over UDP is one too many. */
  take(client: string): boolean {
    const scope = this.#scopeOf(client);
    // What is dropped costs the scope nothing.
    return !this.#scopes.isEmpty(scope) && this.#scopes.spend(scope) === 0;
  }
}

class TokenBuckets {
  readonly #rate: Rate;
  /** When each name has used up what it was given so far. */
  readonly #spentUntil = new Map<string, number>();

  constructor(rate: Rate) {
    this.#rate = rate;
  }

  isEmpty(name: string): boolean {
    return (this.#spentUntil.get(name) ?? -Infinity) > performance.now();
  }

  /** Returns how many milliseconds it is until what was taken is there. */
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

  /** One that has its whole burst back is like one that was never seen. */
  #forget(before: number): void {
    for (const [name, spent] of this.#spentUntil) if (spent < before) this.#spentUntil.delete(name);
  }
}
