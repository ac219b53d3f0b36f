import type { VolumeMetrics } from '@svc/contract/rest';
import type { VolumeInterval } from '../../store/volume-usage.ts';
import type { VolumeRecord } from '../../store/volumes.ts';

const GIB = 1024 ** 3;

/** Series on the grid of the range, limited to recorded times. `intervals` are in order of time. */
export function toVolumeMetrics(
  volume: VolumeRecord,
  range: VolumeMetrics['range'],
  intervals: readonly VolumeInterval[],
  defaultVolumeGib: number,
): VolumeMetrics {
  const used = [...samplesOf(intervals, range)];
  const capacityBytes = (volume.capacityGib ?? defaultVolumeGib) * GIB;
  const capacity = used.map(([at]): [number, number] => [at, capacityBytes]);
  return {
    volume_id: volume.id,
    range,
    metrics: { used_bytes: toSeries(used), capacity_bytes: toSeries(capacity) },
  };
}

function* samplesOf(
  intervals: readonly VolumeInterval[],
  { start, end, step_secs: stepSecs }: VolumeMetrics['range'],
): Generator<[number, number]> {
  const remaining = intervals.map(({ startedAt, endedAt, usedBytes }) => ({
    from: Date.parse(startedAt),
    to: Date.parse(endedAt),
    usedBytes,
  }));
  let index = 0;
  for (let at = start; at <= end; at += stepSecs * 1000) {
    // Intervals share their borders; at a border the later one counts.
    while (index < remaining.length && (remaining[index]?.to ?? 0) <= at) index += 1;
    const interval = remaining[index];
    if (interval === undefined) return;
    if (interval.from <= at) yield [at, interval.usedBytes];
  }
}

function toSeries(samples: [number, number][]) {
  return samples.length === 0 ? [] : [{ labels: {}, samples }];
}
