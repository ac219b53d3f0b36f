import { cpus, release } from 'node:os';
import { isMet, percentile, type Benchmark, type Measurement, type Target } from './benchmark.ts';

/** The results of a run of the suite, as `--json` writes them. */
export interface Report {
  readonly time: string;
  readonly host: { readonly cpus: number; readonly model: string; readonly kernel: string };
  readonly isQuick: boolean;
  readonly benchmarks: BenchmarkReport[];
}

export interface BenchmarkReport {
  readonly name: string;
  readonly promise: string;
  readonly seconds: number;
  /** The host's load over the last minute, before and after. The second value includes the benchmark itself. */
  readonly load: { readonly before: number; readonly after: number };
  readonly measurements: readonly Summary[];
}

interface Summary {
  readonly what: string;
  readonly unit: string;
  readonly samples: number;
  readonly p50: number;
  readonly p95: number;
  readonly p99: number;
  readonly target: Target | null;
  readonly isMet: boolean | null;
}

export function newReport(isQuick: boolean): Report {
  const [first] = cpus();
  return {
    time: new Date().toISOString(),
    host: { cpus: cpus().length, model: first?.model ?? 'unknown', kernel: release() },
    isQuick,
    benchmarks: [],
  };
}

export function summarize({ what, unit, values, target }: Measurement): Summary {
  const p50 = percentile(values, 50);
  return {
    what,
    unit,
    samples: values.length,
    p50,
    p95: percentile(values, 95),
    p99: percentile(values, 99),
    target: target ?? null,
    isMet: target === undefined ? null : isMet(target, p50),
  };
}

export function renderTable(benchmark: Pick<Benchmark, 'description'>, report: BenchmarkReport): string {
  const rows = report.measurements.map(cells);
  const header = ['', 'p50', 'p95', 'p99', 'n', 'target'];
  const widths = header.map((title, column) =>
    Math.max(title.length, ...rows.map((row) => row[column]?.length ?? 0)),
  );
  const line = (row: readonly string[]) =>
    row
      .map((cell, column) =>
        column === 0 || column === 5 ? cell.padEnd(widths[column] ?? 0) : cell.padStart(widths[column] ?? 0),
      )
      .join('  ')
      .trimEnd();
  const { before, after } = report.load;
  const title = `${report.name}: ${benchmark.description}`;
  const foot = `${report.seconds.toFixed(0)} s; load ${before.toFixed(1)} before, ${after.toFixed(1)} after`;
  return [title, line(header), ...rows.map(line), foot].join('\n');
}

function cells(summary: Summary): string[] {
  const { what, unit, samples, target, isMet } = summary;
  const name = unit === '' ? what : `${what} [${unit}]`;
  const [p50, p95, p99] = [summary.p50, summary.p95, summary.p99].map(digits);
  const spread = samples > 1 ? [p95 ?? '', p99 ?? ''] : ['', ''];
  return [
    name,
    p50 ?? '',
    ...spread,
    String(samples),
    target === null ? '' : verdict(target, isMet === true),
  ];
}

function verdict(target: Target, isMet: boolean): string {
  const limit = 'atMost' in target ? `≤ ${target.atMost}` : `≥ ${target.atLeast}`;
  return `${limit} ${isMet ? 'met' : 'MISSED'}`;
}

function digits(value: number): string {
  if (value >= 100 || Number.isInteger(value)) return value.toFixed(0);
  return value.toFixed(value >= 10 ? 1 : 2);
}
