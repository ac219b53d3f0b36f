import type { Database } from '../store/database.ts';
import { listOpenRuns, type OpenRun } from '../store/quotas.ts';
import { readPoolUsage } from './pool-usage.ts';
import { findExhaustedPool, hasHardPool } from './check-quotas.ts';

const MINUTE_MS = 60_000;

export interface Overrun {
  readonly sandboxId: string;
  readonly organizationId: string;
  readonly limit: 'max_uptime_minutes_per_sandbox' | 'included_vcpu_hours' | 'included_memory_gib_hours';
  readonly value: number;
  readonly maximum: number;
  /** The message of the audit event. */
  readonly message: string;
}

/**
 * The runs that must end now: those over their maximum duration, and all of an organization whose pool is used up on a plan without a
 * price for overage.
 */
export async function findOverruns(db: Database, nowMs = Date.now()): Promise<readonly Overrun[]> {
  const runs = await listOpenRuns(db);
  const exhausted = await findExhaustedPools(db, runs, nowMs);
  return runs.flatMap((run) => {
    const { sandboxId, organizationId } = run;
    const overrun = findTooLong(run, nowMs) ?? exhausted.get(organizationId);
    return overrun === undefined ? [] : [{ sandboxId, organizationId, ...overrun }];
  });
}

type Reason = Omit<Overrun, 'sandboxId' | 'organizationId'>;

function findTooLong({ startedAt, terms }: OpenRun, nowMs: number): Reason | undefined {
  const maximum = terms.limits.max_uptime_minutes_per_sandbox;
  const value = Math.floor((nowMs - Date.parse(startedAt)) / MINUTE_MS);
  if (maximum === null || value < maximum) return undefined;
  const message = `it ran for ${value} minutes; the organization allows ${maximum} at a time`;
  return { limit: 'max_uptime_minutes_per_sandbox', value, maximum, message };
}

async function findExhaustedPools(
  db: Database,
  runs: readonly OpenRun[],
  nowMs: number,
): Promise<ReadonlyMap<string, Reason>> {
  const organizations = new Map(
    runs.filter(({ terms }) => hasHardPool(terms)).map((run) => [run.organizationId, run.terms]),
  );
  const reasons = new Map<string, Reason>();
  for (const [organizationId, terms] of organizations) {
    const pool = findExhaustedPool(terms, await readPoolUsage(db, organizationId, nowMs));
    if (pool === null) continue;
    const message = `what the plan includes for this month is used up (${pool.limit} is ${pool.maximum})`;
    // Only these two pools can be exhausted.
    reasons.set(organizationId, { ...pool, limit: pool.limit as Reason['limit'], message });
  }
  return reasons;
}
