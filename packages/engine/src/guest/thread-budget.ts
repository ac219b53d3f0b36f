const MIB = 1024 * 1024;

export interface BudgetLimits {
  /** For all shares that are held back, together. Some 12 % of the engine's thread. */
  readonly totalPerSecond: number;
  /** For one share, while there are few. */
  readonly perSecond: number;
  /** What a share may use at once after a rest. */
  readonly burst: number;
}

const LIMITS: BudgetLimits = { totalPerSecond: 16 * MIB, perSecond: 4 * MIB, burst: MIB };

/**
 * The engine has one thread, and whatever a guest sends takes time of it. This is how much: measured in bytes of output that would take
 * as long. One share for each thing that a sandbox can do without end; those that want more than they may have get equal parts of what
 * is there for all of them, and so the others hardly notice, however many there are.
 */
export class ThreadBudget {
  readonly #limits: BudgetLimits;
  readonly #now: () => number;
  /** Shares that have used more than they had. */
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

/** What one guest may make the engine do, in one way. */
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

  /** Takes it, there or not. A negative amount gives back. */
  spend(amount: number): void {
    this.#fill();
    this.#left = Math.min(this.#burst, this.#left - amount);
    if (this.#left < 0) this.#held.add(this);
  }

  /** Milliseconds until so much is left; 0 when it is. */
  waitMs(wanted = 0): number {
    this.#fill();
    return this.#left >= wanted ? 0 : Math.ceil((wanted - this.#left) / this.#perMs());
  }

  /** Its owner is gone. */
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
