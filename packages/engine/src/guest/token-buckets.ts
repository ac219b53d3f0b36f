const MIB = 1024 * 1024;

export interface BucketLimits {
  /** The rate for all overdrawn buckets together: some 12 % of the engine's thread. */
  readonly totalPerSecond: number;
  /** The rate for one bucket, while few are overdrawn. */
  readonly perSecond: number;
  /** The capacity of a bucket. */
  readonly burst: number;
}

const LIMITS: BucketLimits = { totalPerSecond: 16 * MIB, perSecond: 4 * MIB, burst: MIB };

/**
 * Token buckets that limit how much time of the engine's only thread the input of guests takes. The unit is a byte of output that takes as
 * long to handle. Each unbounded kind of input of a sandbox has one bucket; overdrawn buckets divide a common rate equally, so that other
 * sandboxes are hardly affected, however many buckets are overdrawn.
 */
export class TokenBuckets {
  readonly #limits: BucketLimits;
  readonly #now: () => number;
  /** Buckets that are overdrawn. */
  readonly #overdrawn = new Set<TokenBucket>();

  constructor(limits: BucketLimits = LIMITS, now: () => number = () => performance.now()) {
    this.#limits = limits;
    this.#now = now;
  }

  create(): TokenBucket {
    return new TokenBucket(this.#limits.burst, this.#now, this.#overdrawn, () => this.#perMs());
  }

  #perMs(): number {
    const { totalPerSecond, perSecond } = this.#limits;
    return Math.min(perSecond, totalPerSecond / Math.max(1, this.#overdrawn.size)) / 1000;
  }
}

/** The token bucket of one guest for one kind of input. */
export class TokenBucket {
  readonly #burst: number;
  readonly #now: () => number;
  readonly #overdrawn: Set<TokenBucket>;
  readonly #perMs: () => number;
  #left: number;
  #filledAt: number;

  constructor(burst: number, now: () => number, overdrawn: Set<TokenBucket>, perMs: () => number) {
    this.#burst = burst;
    this.#now = now;
    this.#overdrawn = overdrawn;
    this.#perMs = perMs;
    this.#left = burst;
    this.#filledAt = now();
  }

  /** Takes tokens, also below zero. A negative amount returns them. */
  spend(amount: number): void {
    this.#fill();
    this.#left = Math.min(this.#burst, this.#left - amount);
    if (this.#left < 0) this.#overdrawn.add(this);
  }

  /** Milliseconds until this many tokens are available; 0 when they are. */
  waitMs(wanted = 0): number {
    this.#fill();
    return this.#left >= wanted ? 0 : Math.ceil((wanted - this.#left) / this.#perMs());
  }

  /** Called when the owner has ended. */
  release(): void {
    this.#overdrawn.delete(this);
  }

  #fill(): void {
    const now = this.#now();
    this.#left = Math.min(this.#burst, this.#left + (now - this.#filledAt) * this.#perMs());
    this.#filledAt = now;
    if (this.#left >= 0) this.#overdrawn.delete(this);
  }
}
