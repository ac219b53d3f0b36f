import { hash } from 'node:crypto';

/** Longer than somebody pauses who makes one sandbox after the other. */
const KEPT_MS = 30_000;
const MAX_KEPT = 500;

/** Questions that were answered with yes a moment ago and would be again, so that nobody has to wait for the same answer. */
export class RecentAnswers {
  /** By digest, since questions hold what callers gave us; the oldest first. */
  readonly #until = new Map<string, number>();
  readonly #now: () => number;

  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  has(question: object): boolean {
    return (this.#until.get(digestOf(question)) ?? -Infinity) > this.#now();
  }

  note(question: object): void {
    const digest = digestOf(question);
    this.#until.delete(digest);
    this.#until.set(digest, this.#now() + KEPT_MS);
    const [oldest] = this.#until.keys();
    if (this.#until.size > MAX_KEPT && oldest !== undefined) this.#until.delete(oldest);
  }

  /** Who answered may be another by now. */
  forget(): void {
    this.#until.clear();
  }
}

function digestOf(question: object): string {
  return hash('sha256', JSON.stringify(question), 'base64');
}
