import { DEFAULT_METRICS_INTERVAL_MS, PlatformError, type SandboxSpec } from '@svc/contract';
import { MIN_METRICS_STEP_SECONDS, SANDBOX_METRICS, type SandboxMetric } from '@svc/contract/rest';
import type { MetricHistory, Sample } from '../../accounting/metric-history.ts';
import { badField } from '../../dispatch/rest-dispatch.ts';
import type { RestHandlers } from '../../dispatch/rest-handlers.ts';
import type { Database } from '../../store/database.ts';
import { findOwnSandbox } from '../../store/sandboxes.ts';

const DEFAULT_RANGE_SECONDS = 3600;
const DEFAULT_STEP_SECONDS = 30;

export function metricHandlers(
  database: Database,
  metricHistory: MetricHistory,
): Pick<RestHandlers, 'sandboxes.metrics'> {
  return {
    'sandboxes.metrics': async ({ params, query }, { organization }) => {
      const sandboxId = params.sandbox_id.toLowerCase();
      const { range_secs: range = DEFAULT_RANGE_SECONDS } = query;
      const { step_secs: step = Math.min(DEFAULT_STEP_SECONDS, Math.max(range, MIN_METRICS_STEP_SECONDS)) } =
        query;
      if (query.step_secs !== undefined && step > range) {
        throw badField('step_secs', `must not be longer than the range of ${range} s`);
      }
      const { runtime } = await requireSpec(database, organization.id, sandboxId);
      // Steps begin at whole multiples of their length, so that two calls agree about them.
      const end = Math.ceil(Date.now() / 1000 / step) * step * 1000;
      const start = end - Math.ceil(range / step) * step * 1000;
      const samples = await metricHistory.read(sandboxId, start, end);
      const series = SANDBOX_METRICS.map((metric) => [metric, toSeries(samples, metric, start, step * 1000)]);
      return {
        sandbox_id: sandboxId,
        sampling: {
          disabled: runtime?.disable_metrics_sample ?? false,
          interval_ms: runtime?.metrics_sample_interval_ms ?? DEFAULT_METRICS_INTERVAL_MS,
        },
        range: { start, end, step_secs: step },
        // Built from the list of all names.
        metrics: Object.fromEntries(series) as Record<SandboxMetric, Series[]>,
      };
    },
  };
}

async function requireSpec(db: Database, organizationId: string, id: string): Promise<SandboxSpec> {
  const found = await findOwnSandbox(db, organizationId, { id });
  if (found !== undefined) return found.spec;
  throw new PlatformError('sandbox_not_found', `There is no sandbox ${id}`, { details: { sandbox_id: id } });
}

interface Series {
  labels: Record<string, string>;
  samples: [number, number][];
}

/**
 * Groups samples from `startMs` on into steps; each step is the mean of its samples, at the time at which it begins. Steps without a
 * sample are left out, and a metric without samples has no series.
 */
function toSeries(samples: readonly Sample[], metric: string, startMs: number, stepMs: number): Series[] {
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
