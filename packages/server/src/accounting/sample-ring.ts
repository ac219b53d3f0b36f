import { SANDBOX_METRICS, type SandboxMetric } from '@svc/contract/rest';

const FIRST_CAPACITY = 16;
const WIDTH = 1 + SANDBOX_METRICS.length;

export type SandboxValues = Readonly<Record<SandboxMetric, number>>;

/**
 * The latest samples of one sandbox, oldest first; new ones overwrite the oldest. Plain numbers in one array that grows with need: an
 * hour of 500 sandboxes takes 26 MB.
 */
export class SampleRing {
  readonly #maxSamples: number;
  #numbers = new Float64Array(FIRST_CAPACITY * WIDTH);
  #first = 0;
  #length = 0;

  constructor(maxSamples: number) {
    this.#maxSamples = maxSamples;
  }

  get lastAtMs(): number {
    return this.#length === 0 ? 0 : this.#read(this.#length - 1, 0);
  }

  push(atMs: number, values: SandboxValues): void {
    if (this.#length === this.#capacity && this.#capacity < this.#maxSamples) this.#grow();
    if (this.#length === this.#capacity) this.#first = (this.#first + 1) % this.#capacity;
    else this.#length += 1;
    const offset = this.#offset(this.#length - 1);
    this.#numbers[offset] = atMs;
    for (const [index, metric] of SANDBOX_METRICS.entries())
      this.#numbers[offset + 1 + index] = values[metric];
  }

  /** `fromMs` included, `toMs` not. */
  *between(
    fromMs: number,
    toMs: number,
  ): Generator<{ readonly atMs: number; readonly values: SandboxValues }> {
    for (let position = 0; position < this.#length; position++) {
      const atMs = this.#read(position, 0);
      if (atMs >= fromMs && atMs < toMs) yield { atMs, values: this.#valuesAt(position) };
    }
  }

  get #capacity(): number {
    return this.#numbers.length / WIDTH;
  }

  #valuesAt(position: number): SandboxValues {
    const entries = SANDBOX_METRICS.map((metric, index) => [metric, this.#read(position, 1 + index)]);
    // Built from the list of all names.
    return Object.fromEntries(entries) as SandboxValues;
  }

  #read(position: number, column: number): number {
    return this.#numbers[this.#offset(position) + column] ?? 0;
  }

  #offset(position: number): number {
    return ((this.#first + position) % this.#capacity) * WIDTH;
  }

  /** Only before the ring is full for the first time, while samples still lie in order. */
  #grow(): void {
    const larger = new Float64Array(Math.min(this.#capacity * 2, this.#maxSamples) * WIDTH);
    larger.set(this.#numbers);
    this.#numbers = larger;
  }
}
