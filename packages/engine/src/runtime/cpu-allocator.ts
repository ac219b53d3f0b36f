/**
 * Chooses the CPUs of pinned sandboxes: the position with the fewest other sandboxes, round robin among equals. Sandboxes of an earlier
 * process of the engine are not counted.
 */
export class CpuAllocator {
  readonly #counts: number[];
  readonly #allocated = new Map<string, readonly number[]>();
  #next = 0;

  /** `count` is the number of CPUs. */
  constructor(count: number) {
    this.#counts = Array.from({ length: count }, () => 0);
  }

  /** @returns the position of its first CPU; the others follow, with wrap-around */
  allocate(handle: string, vcpus: number): number {
    const { length } = this.#counts;
    this.free(handle);
    // It is not pinned.
    if (vcpus >= length) return 0;
    const candidates = Array.from({ length }, (_, offset) => this.#from(this.#next + offset, vcpus));
    const cpus = candidates.reduce((best, each) => (this.#load(each) < this.#load(best) ? each : best));
    this.#count(cpus, 1);
    this.#allocated.set(handle, cpus);
    const [first = 0] = cpus;
    this.#next = first + vcpus;
    return first;
  }

  free(handle: string): void {
    this.#count(this.#allocated.get(handle) ?? [], -1);
    this.#allocated.delete(handle);
  }

  #from(first: number, vcpus: number): readonly number[] {
    return Array.from({ length: vcpus }, (_, index) => (first + index) % this.#counts.length);
  }

  #load(cpus: readonly number[]): number {
    return cpus.reduce((sum, cpu) => sum + (this.#counts[cpu] ?? 0), 0);
  }

  #count(cpus: readonly number[], change: 1 | -1): void {
    for (const cpu of cpus) this.#counts[cpu] = (this.#counts[cpu] ?? 0) + change;
  }
}
