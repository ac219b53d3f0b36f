/**
 * Chooses the CPUs of pinned sandboxes: the position with the fewest other sandboxes, round robin among equals. Sandboxes of an earlier
 * process of the engine are not counted.
 */
export class CpuPlaces {
  readonly #counts: number[];
  readonly #taken = new Map<string, readonly number[]>();
  #next = 0;

  /** `count` is the number of CPUs. */
  constructor(count: number) {
    this.#counts = Array.from({ length: count }, () => 0);
  }

  /** @returns the position of its first CPU; the others follow, with wrap-around */
  take(handle: string, vcpus: number): number {
    const { length } = this.#counts;
    this.leave(handle);
    // It is not pinned.
    if (vcpus >= length) return 0;
    const places = Array.from({ length }, (_, turn) => this.#from(this.#next + turn, vcpus));
    const place = places.reduce((best, each) => (this.#load(each) < this.#load(best) ? each : best));
    this.#count(place, 1);
    this.#taken.set(handle, place);
    const [first = 0] = place;
    this.#next = first + vcpus;
    return first;
  }

  leave(handle: string): void {
    this.#count(this.#taken.get(handle) ?? [], -1);
    this.#taken.delete(handle);
  }

  #from(first: number, vcpus: number): readonly number[] {
    return Array.from({ length: vcpus }, (_, index) => (first + index) % this.#counts.length);
  }

  #load(place: readonly number[]): number {
    return place.reduce((sum, cpu) => sum + (this.#counts[cpu] ?? 0), 0);
  }

  #count(place: readonly number[], change: 1 | -1): void {
    for (const cpu of place) this.#counts[cpu] = (this.#counts[cpu] ?? 0) + change;
  }
}
