import { hash } from 'node:crypto';

/** Longer than the pause between creates of one caller. */
const KEPT_MS = 30_000;
const MAX_KEPT = 500;

/** Caches recent positive answers, so that callers need not wait for the same answer again. */
export class RecentAnswers {
  /** By digest, since questions contain data of callers; the oldest first. */
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

  /** Another engine may answer by now. */
  forget(): void {
    this.#until.clear();
  }
}

function digestOf(question: object): string {
  return hash('sha256', JSON.stringify(question), 'base64');
}
