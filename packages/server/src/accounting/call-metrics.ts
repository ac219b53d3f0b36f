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
    const lines = [
      '# HELP svc_calls_total Calls by operation and outcome.',
      '# TYPE svc_calls_total counter',
    ];
    for (const [labels, count] of this.#byOutcome) lines.push(`svc_calls_total{${labels}} ${count}`);
    lines.push(
      '# HELP svc_call_duration_seconds How long calls took.',
      '# TYPE svc_call_duration_seconds histogram',
    );
    for (const [operation, series] of this.#durations) lines.push(...renderSeries(operation, series));
    return lines;
  }

  #seriesOf(operation: string): Series {
    const known = this.#durations.get(operation);
    if (known !== undefined) return known;
    const series = { buckets: DURATION_BUCKETS_SECONDS.map(() => 0), sumSeconds: 0, count: 0 };
    this.#durations.set(operation, series);
    return series;
  }
}

function renderSeries(operation: string, { buckets, sumSeconds, count }: Series): readonly string[] {
  const name = 'svc_call_duration_seconds';
  let below = 0;
  const lines = DURATION_BUCKETS_SECONDS.map((limit, index) => {
    below += buckets[index] ?? 0;
    return `${name}_bucket{operation="${operation}",le="${limit}"} ${below}`;
  });
  return [
    ...lines,
    `${name}_bucket{operation="${operation}",le="+Inf"} ${count}`,
    `${name}_sum{operation="${operation}"} ${sumSeconds}`,
    `${name}_count{operation="${operation}"} ${count}`,
  ];
}
