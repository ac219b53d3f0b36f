import type { Sample } from './metric-history.ts';

export interface Series {
  labels: Record<string, string>;
  samples: [number, number][];
}

/**
 * Cuts the time from `startMs` on into steps; each becomes the mean of its samples, under the time at which it begins. Steps
 * without a sample are left out, and a metric without any has no series.
 */
export function toSeries(
  samples: readonly Sample[],
  metric: string,
  startMs: number,
  stepMs: number,
): Series[] {
  const points: [number, number][] = [];
  const steps = Map.groupBy(samples, ({ atMs }) => Math.floor((atMs - startMs) / stepMs));
  for (const [step, group] of steps) {
    const values = group.flatMap(({ values }) => values[metric] ?? []);
    if (values.length === 0) continue;
    const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
    points.push([startMs + step * stepMs, Math.round(mean * 100) / 100]);
  }
  return points.length === 0 ? [] : [{ labels: {}, samples: points }];
}
