/** Counts the open connections of each sandbox and of all, and refuses what would be too many. */
export class ConnectionSlots {
  readonly #maxTotal: number;
  readonly #taken = new Map<string, number>();
  #total = 0;

  constructor(maxTotal: number) {
    this.#maxTotal = maxTotal;
  }

  get total(): number {
    return this.#total;
  }

  /** False when the sandbox, or this process, has as many as it may. What was taken is given back exactly once. */
  take(sandbox: string, max: number): boolean {
    const taken = this.#taken.get(sandbox) ?? 0;
    if (taken >= max || this.#total >= this.#maxTotal) return false;
    this.#taken.set(sandbox, taken + 1);
    this.#total += 1;
    return true;
  }

  giveBack(sandbox: string): void {
    const left = (this.#taken.get(sandbox) ?? 1) - 1;
    if (left === 0) this.#taken.delete(sandbox);
    else this.#taken.set(sandbox, left);
    this.#total -= 1;
  }
}
