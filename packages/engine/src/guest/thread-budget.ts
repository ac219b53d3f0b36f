const MIB = 1024 * 1024;

export interface BudgetLimits {
  /** The rate for all throttled shares together: some 12 % of the engine's thread. */
  readonly totalPerSecond: number;
  /** The rate for one share, while there are few. */
  readonly perSecond: number;
  /** The burst of a share. */
  readonly burst: number;
}

const LIMITS: BudgetLimits = { totalPerSecond: 16 * MIB, perSecond: 4 * MIB, burst: MIB };

/**
 * Token buckets for the time of the engine's only thread, which handling a guest's input takes. The unit is a byte of output that takes as
 * long to handle. Each unbounded kind of input of a sandbox has one share; shares over their rate divide a common rate equally, so that the
 * others are hardly affected, however many there are.
 */
export class ThreadBudget {
  readonly #limits: BudgetLimits;
  readonly #now: () => number;
  /** Shares that are overdrawn. */
  readonly #held = new Set<ThreadShare>();

  constructor(limits: BudgetLimits = LIMITS, now: () => number = () => performance.now()) {
    this.#limits = limits;
    this.#now = now;
  }

  share(): ThreadShare {
    return new ThreadShare(this.#limits.burst, this.#now, this.#held, () => this.#perMs());
  }

  #perMs(): number {
    const { totalPerSecond, perSecond } = this.#limits;
    return Math.min(perSecond, totalPerSecond / Math.max(1, this.#held.size)) / 1000;
  }
}

/** The token bucket of one guest for one kind of input. */
export class ThreadShare {
  readonly #burst: number;
  readonly #now: () => number;
  readonly #held: Set<ThreadShare>;
  readonly #perMs: () => number;
  #left: number;
  #filledAt: number;

  constructor(burst: number, now: () => number, held: Set<ThreadShare>, perMs: () => number) {
    this.#burst = burst;
    this.#now = now;
    this.#held = held;
    this.#perMs = perMs;
    this.#left = burst;
    this.#filledAt = now();
  }

  /** Takes tokens, also below zero. A negative amount returns them. */
  spend(amount: number): void {
    this.#fill();
    this.#left = Math.min(this.#burst, this.#left - amount);
    if (this.#left < 0) this.#held.add(this);
  }

  /** Milliseconds until this many tokens are available; 0 when they are. */
  waitMs(wanted = 0): number {
    this.#fill();
    return this.#left >= wanted ? 0 : Math.ceil((wanted - this.#left) / this.#perMs());
  }

  /** Called when the owner has ended. */
  release(): void {
    this.#held.delete(this);
  }

  #fill(): void {
    const now = this.#now();
    this.#left = Math.min(this.#burst, this.#left + (now - this.#filledAt) * this.#perMs());
    this.#filledAt = now;
    if (this.#left >= 0) this.#held.delete(this);
  }
}
