import { renderFamily } from './metric-families.ts';

const DURATION_BUCKETS_SECONDS = [
  0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 60,
] as const;

interface Series {
  readonly buckets: number[];
  sumSeconds: number;
  count: number;
}

/** Counts calls for Prometheus (text exposition format 0.0.4). */
export class CallMetrics {
  readonly #byOutcome = new Map<string, number>();
  readonly #durations = new Map<string, Series>();

  count(operation: string, outcome: string, durationMs: number): void {
    const key = `operation="${operation}",outcome="${outcome}"`;
    this.#byOutcome.set(key, (this.#byOutcome.get(key) ?? 0) + 1);
    const series = this.#seriesOf(operation);
    const seconds = durationMs / 1000;
    series.sumSeconds += seconds;
    series.count += 1;
    const bucket = DURATION_BUCKETS_SECONDS.findIndex((limit) => seconds <= limit);
    if (bucket !== -1) series.buckets[bucket] = (series.buckets[bucket] ?? 0) + 1;
  }

  /** The lines of both families. */
  render(): readonly string[] {
    const outcomes = [...this.#byOutcome].map(([labels, count]) => [`{${labels}}`, count] as const);
    const durations = [...this.#durations].flatMap(([operation, series]) => samplesOf(operation, series));
    return [
      ...renderFamily('svc_calls_total', outcomes),
      ...renderFamily('svc_call_duration_seconds', durations),
    ];
  }

  #seriesOf(operation: string): Series {
    const known = this.#durations.get(operation);
    if (known !== undefined) return known;
    const series = { buckets: DURATION_BUCKETS_SECONDS.map(() => 0), sumSeconds: 0, count: 0 };
    this.#durations.set(operation, series);
    return series;
  }
}

function samplesOf(
  operation: string,
  { buckets, sumSeconds, count }: Series,
): readonly (readonly [string, number])[] {
  let below = 0;
  const limits = DURATION_BUCKETS_SECONDS.map((limit, index) => {
    below += buckets[index] ?? 0;
    return [`_bucket{operation="${operation}",le="${limit}"}`, below] as const;
  });
  return [
    ...limits,
    [`_bucket{operation="${operation}",le="+Inf"}`, count],
    [`_sum{operation="${operation}"}`, sumSeconds],
    [`_count{operation="${operation}"}`, count],
  ];
}
