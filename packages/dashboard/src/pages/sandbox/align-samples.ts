export interface Series {
  readonly name: string;
  /** Milliseconds since 1970, and the amount. */
  readonly samples: readonly (readonly [number, number])[];
}

/** Times in seconds first, then the values of each series at these times; null where there is none. */
export function alignSamples(series: readonly Series[]): [number[], ...(number | null)[][]] {
  const times = [...new Set(series.flatMap(({ samples }) => samples.map(([time]) => time)))].toSorted(
    (a, b) => a - b,
  );
  const rows = series.map(({ samples }) => {
    const known = new Map(samples);
    return times.map((time) => known.get(time) ?? null);
  });
  return [times.map((time) => time / 1000), ...rows];
}
