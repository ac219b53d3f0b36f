/** Measures the steps of a start or a stop, in milliseconds with three decimals. */
export class StepTimer {
  readonly #steps: Record<string, number> = {};
  readonly #begun = performance.now();

  async time<T>(step: string, work: () => Promise<T>): Promise<T> {
    const begun = performance.now();
    try {
      return await work();
    } finally {
      this.#steps[step] = round(performance.now() - begun);
    }
  }

  result(): Record<string, number> {
    return { ...this.#steps, total: round(performance.now() - this.#begun) };
  }
}

/** Formats the steps for a log line. */
export function inWords(timings: Readonly<Record<string, number>>): string {
  return Object.entries(timings)
    .map(([step, milliseconds]) => `${step} ${milliseconds} ms`)
    .join(', ');
}

function round(milliseconds: number): number {
  return Math.round(milliseconds * 1000) / 1000;
}
