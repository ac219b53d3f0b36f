const MODULUS = 2_147_483_647;
const FACTOR = 48_271;

/** A seeded random generator, so that a fuzzer's finding can be reproduced. */
export class RandomGenerator {
  #state: number;

  constructor(seed: number) {
    this.#state = (Math.abs(Math.trunc(seed)) % (MODULUS - 1)) + 1;
  }

  below(end: number): number {
    this.#state = (this.#state * FACTOR) % MODULUS;
    return this.#state % end;
  }

  oneOf<T>(values: readonly T[]): T {
    if (values.length === 0) throw new Error('there is nothing to choose from');
    // The index is below the length.
    return values[this.below(values.length)] as T;
  }
}
