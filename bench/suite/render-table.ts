import { percentile, type Measurement } from './benchmark.ts';
import { isMet, type Result, type Target } from './results.ts';

const HEADER = ['', 'p50', 'p95', 'p99', 'n', 'target'];
const LEFT_ALIGNED = new Set([0, HEADER.length - 1]);

/** What a benchmark measured, for the terminal. */
export function renderTable(measurements: readonly Measurement[], known: readonly Result[]): string {
  const rows = measurements.map((measurement) => cells(measurement, known));
  const widths = HEADER.map((title, column) =>
    Math.max(title.length, ...rows.map((row) => row[column]?.length ?? 0)),
  );
  const line = (row: readonly string[]) =>
    row
      .map((cell, column) =>
        LEFT_ALIGNED.has(column) ? cell.padEnd(widths[column] ?? 0) : cell.padStart(widths[column] ?? 0),
      )
      .join('  ')
      .trimEnd();
  return [line(HEADER), ...rows.map(line)].join('\n');
}

function cells(
  { what, unit, values, promise, percent = 50 }: Measurement,
  known: readonly Result[],
): string[] {
  const [p50 = '', ...spread] = [50, 95, 99].map((each) => digits(percentile(values, each)));
  const target = known.find(({ id }) => id === promise)?.target;
  return [
    unit === '' ? what : `${what} [${unit}]`,
    p50,
    ...(values.length > 1 ? spread : ['', '']),
    String(values.length),
    target === undefined ? '' : verdict(target, percentile(values, percent)),
  ];
}

function verdict(target: Target, value: number): string {
  return `${renderTarget(target)} ${isMet(target, value) ? 'met' : 'MISSED'}`;
}

export function renderTarget(target: Target): string {
  return 'atMost' in target ? `≤ ${target.atMost}` : `≥ ${target.atLeast}`;
}

/** NaN means that the value does not apply. */
export function digits(value: number): string {
  if (Number.isNaN(value)) return '–';
  if (value >= 100 || Number.isInteger(value)) return value.toFixed(0);
  return value.toFixed(value >= 10 ? 1 : 2);
}
