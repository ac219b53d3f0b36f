/** A benchmark of the suite: it measures promises of docs/promises.md, and what explains their values. */
export interface Benchmark {
  readonly name: string;
  readonly description: string;
  run(context: BenchmarkContext): Promise<readonly Measurement[]>;
}

export interface BenchmarkContext {
  /** Takes few samples, which only shows that the benchmark works. */
  readonly isQuick: boolean;
  /** Aborted when the run is interrupted: a benchmark then cleans up and throws. */
  readonly signal: AbortSignal;
  readonly note: (text: string) => void;
}

export type Unit = 'µs' | 'ms' | 's' | '%' | 'MiB' | 'MiB/s' | '/s' | '×' | '';

export interface Measurement {
  readonly what: string;
  readonly unit: Unit;
  readonly values: readonly number[];
  /** The id of the promise in bench/results.json that it measures. */
  readonly promise?: string;
  /** The percentile that the promise is about: the median unless given. */
  readonly percent?: number;
}

/** How many times larger the median of `ours` is than that of `other`. */
export function ratio(
  what: string,
  ours: readonly number[],
  other: readonly number[],
  promise?: string,
): Measurement {
  const values = [percentile(ours, 50) / percentile(other, 50)];
  return { what, unit: '×', values, ...(promise === undefined ? {} : { promise }) };
}

/** The nearest rank: always one of the values. */
export function percentile(values: readonly number[], percent: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  const rank = Math.max(1, Math.ceil((percent / 100) * sorted.length));
  return sorted[rank - 1] ?? Number.NaN;
}

/**
 * Measures each subject once per round, so that other load on the machine affects all of them alike.
 * The first round only warms caches and is not counted.
 */
export async function interleave<Name extends string, Value = number>(
  rounds: number,
  subjects: Readonly<Record<Name, () => Promise<Value>>>,
  signal: AbortSignal,
): Promise<Record<Name, Value[]>> {
  const names = Object.keys(subjects) as Name[];
  const values = Object.fromEntries(names.map((name) => [name, []])) as unknown as Record<Name, Value[]>;
  for (let round = 0; round <= rounds; round++) {
    for (const name of names) {
      signal.throwIfAborted();
      const value = await subjects[name]();
      if (round > 0) values[name].push(value);
    }
  }
  return values;
}
