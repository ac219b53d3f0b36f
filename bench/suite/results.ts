import { readFileSync, writeFileSync } from 'node:fs';
import { cpus, release } from 'node:os';
import { resolve } from 'node:path';
import { percentile, type Measurement } from './benchmark.ts';

export const RESULTS = resolve(import.meta.dirname, '../results.json');

/** A promise, and its latest result: null where it was not measured. bench/results.json is the list of all of them. */
export interface Result {
  readonly id: string;
  /** The program that measures it: `node bench/run.ts NAME`, or `peers` and `scale`. */
  readonly benchmark: string;
  readonly promise: string;
  readonly target: Target;
  readonly unit: string;
  readonly value: number | null;
  readonly met: boolean | null;
  readonly date: string | null;
  readonly machine: string | null;
}

export type Target = { readonly atMost: number } | { readonly atLeast: number };

export function readResults(path = RESULTS): readonly Result[] {
  return JSON.parse(readFileSync(path, 'utf8')) as Result[];
}

/** Replaces the results of the promises that were measured; the others stay as they are. */
export function writeResults(measurements: readonly Measurement[], path = RESULTS): void {
  const measured = new Map(
    measurements.flatMap((measurement) => {
      const result = resultOf(measurement, readResults(path));
      return result === undefined ? [] : [[result.id, result] as const];
    }),
  );
  const results = readResults(path).map((result) => measured.get(result.id) ?? result);
  writeFileSync(path, `${JSON.stringify(results, null, 2)}\n`);
}

/** The result of a measurement; undefined for one without a promise. */
export function resultOf(
  { promise, percent = 50, values, unit }: Measurement,
  known: readonly Result[],
): Result | undefined {
  if (promise === undefined) return undefined;
  const result = known.find(({ id }) => id === promise);
  if (result?.unit !== unit) throw new Error(`bench/results.json has no promise ${promise} in '${unit}'`);
  const value = rounded(percentile(values, percent));
  const date = new Date().toISOString().slice(0, 10);
  return { ...result, value, met: isMet(result.target, value), date, machine: describeMachine() };
}

export function isMet(target: Target, value: number): boolean {
  return 'atMost' in target ? value <= target.atMost : value >= target.atLeast;
}

/** Three significant digits. */
function rounded(value: number): number {
  return Number(value.toPrecision(3));
}

export function describeMachine(): string {
  const [first] = cpus();
  const [linux = ''] = release().split('-');
  return `${cpus().length} cores, ${first?.model ?? 'unknown'}, Linux ${linux}`;
}
