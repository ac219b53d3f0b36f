import { Type } from '../schema/type.ts';
import { strictObject } from '../spec/strict.ts';
import { NO_FIELDS, Uuid } from './fields.ts';
import type { RestOperation } from './rest-operation.ts';

export const SANDBOX_METRICS = [
  'cpu',
  'memory_bytes',
  'memory_limit_bytes',
  'disk_used_bytes',
  'disk_total_bytes',
  'net_rx_bytes_rate',
  'net_tx_bytes_rate',
  'processes',
] as const;
export type SandboxMetric = (typeof SANDBOX_METRICS)[number];

export const MAX_METRICS_RANGE_SECONDS = 604_800;
export const MIN_METRICS_STEP_SECONDS = 5;

/** A range that ends now, cut into steps. A step longer than the range is refused by the handler. */
export const METRICS_QUERY = strictObject({
  range_secs: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: MAX_METRICS_RANGE_SECONDS,
      default: 3600,
      description: 'Seconds up to now',
    }),
  ),
  step_secs: Type.Optional(
    Type.Integer({
      minimum: MIN_METRICS_STEP_SECONDS,
      maximum: MAX_METRICS_RANGE_SECONDS,
      default: 30,
      description: 'Seconds that become one sample',
    }),
  ),
});

/** Times are milliseconds since 1970. A sample is the mean of its step and carries the time at which that begins. */
export const METRICS_RANGE = strictObject({
  start: Type.Integer(),
  end: Type.Integer(),
  step_secs: Type.Integer(),
});

export const MetricSeries = Type.Array(
  strictObject({
    labels: Type.Record(Type.String(), Type.String()),
    samples: Type.Array(Type.Tuple([Type.Integer(), Type.Number()])),
  }),
  { description: 'Empty: nothing was measured' },
);

export const metricOperations = {
  'sandboxes.metrics': {
    summary: 'What a sandbox used over time; cpu in percent of one core, rates per second',
    tag: 'sandboxes',
    method: 'GET',
    path: '/sandboxes/{sandbox_id}/metrics',
    audience: 'both',
    role: 'member',
    params: strictObject({ sandbox_id: Uuid }),
    query: METRICS_QUERY,
    headers: NO_FIELDS,
    body: null,
    output: strictObject({
      sandbox_id: Uuid,
      sampling: strictObject({
        disabled: Type.Boolean({ description: 'Nothing is measured: runtime.disable_metrics_sample' }),
        interval_ms: Type.Integer({ description: 'Between two measurements; one in 5 s at most is kept' }),
      }),
      range: METRICS_RANGE,
      metrics: strictObject({
        cpu: MetricSeries,
        memory_bytes: MetricSeries,
        memory_limit_bytes: MetricSeries,
        disk_used_bytes: MetricSeries,
        disk_total_bytes: MetricSeries,
        net_rx_bytes_rate: MetricSeries,
        net_tx_bytes_rate: MetricSeries,
        processes: MetricSeries,
      }),
    }),
    status: 200,
    errors: ['sandbox_not_found'],
  },
} as const satisfies Record<string, RestOperation>;
