import { readFileSync } from 'node:fs';
import { uptime } from 'node:os';
import { sql } from 'kysely';
import type { Database } from './database.ts';
import { inTransactionAhead } from './in-transaction.ts';

/** Smaller differences are not a clock step: the two clocks are not read at the same moment. */
const MIN_STEP_MS = 250;
/** How often the time at which runs were last seen is written. */
export const SEEN_INTERVAL_MS = 10_000;

/** The wall clock of a host, which can be set, and its monotonic clock, which cannot. */
export interface HostClock {
  /** Changes with every boot of the host. */
  readonly bootId: string;
  nowMs(): number;
  uptimeMs(): number;
}

/** The clock of the host that this server shares with its engine. */
export const HOST_CLOCK: HostClock = {
  bootId: readFileSync('/proc/sys/kernel/random/boot_id', 'latin1').trim(),
  nowMs: () => Date.now(),
  uptimeMs: () => uptime() * 1000,
};

interface Known {
  readonly bootId: string;
  readonly offsetMs: number;
  seenAtMs: number;
}

const known = new WeakMap<Database, Known>();

/**
 * Detects that the wall clock was set, and moves the start times of open runs by the same amount, so that their
 * durations stay correct. Of several servers on one host, one does this. Also writes, every few seconds, when runs
 * were last seen, as the end time of runs that end with their host. Cheap when there is no change; call it often.
 */
export async function followClock(database: Database, clock: HostClock = HOST_CLOCK): Promise<void> {
  const { bootId } = clock;
  const uptimeMs = clock.uptimeMs();
  const offsetMs = Math.round(clock.nowMs() - uptimeMs);
  const last = known.get(database);
  const isKnown = last?.bootId === bootId && Math.abs(offsetMs - last.offsetMs) < MIN_STEP_MS;
  if (isKnown && uptimeMs - last.seenAtMs < SEEN_INTERVAL_MS) return;
  const seenAt = new Date(offsetMs + uptimeMs).toISOString();
  const stored = await inTransactionAhead(database, async (transaction) => {
    if (isKnown && !(await hasOpenRun(transaction, bootId))) return offsetMs;
    const before = await noteSeen(transaction, { bootId, offsetMs, seenAt });
    const stepMs = offsetMs - before;
    if (Math.abs(stepMs) < MIN_STEP_MS) return before;
    await moveOpenRuns(transaction, bootId, stepMs);
    return offsetMs;
  });
  known.set(database, { bootId, offsetMs: isKnown ? last.offsetMs : stored, seenAtMs: uptimeMs });
}

/** When the host was last seen during this boot; undefined: never. */
export async function readLastSeen(db: Database, bootId: string): Promise<string | undefined> {
  const row = await db
    .selectFrom('clocks')
    .select('seen_at')
    .where('boot_id', '=', bootId)
    .executeTakeFirst();
  return row?.seen_at;
}

/** Writes `seenAt` and locks the row. @returns the stored offset between wall clock and time since boot */
async function noteSeen(
  transaction: Database,
  {
    bootId,
    offsetMs,
    seenAt,
  }: { readonly bootId: string; readonly offsetMs: number; readonly seenAt: string },
): Promise<number> {
  await transaction
    .insertInto('clocks')
    .values({ boot_id: bootId, offset_ms: offsetMs, seen_at: seenAt })
    .onConflict((conflict) => conflict.column('boot_id').doUpdateSet({ seen_at: seenAt }))
    .execute();
  const { offset_ms: before } = await transaction
    .selectFrom('clocks')
    .select('offset_ms')
    .where('boot_id', '=', bootId)
    .executeTakeFirstOrThrow();
  return Number(before);
}

async function moveOpenRuns(transaction: Database, bootId: string, stepMs: number): Promise<void> {
  await transaction
    .updateTable('clocks')
    .set({ offset_ms: sql<number>`offset_ms + ${stepMs}` })
    .where('boot_id', '=', bootId)
    .execute();
  const open = await transaction
    .selectFrom('runs')
    .select(['id', 'started_at'])
    .where('ended_at', 'is', null)
    .where('boot_id', '=', bootId)
    .execute();
  for (const { id, started_at: start } of open) {
    const moved = new Date(Date.parse(start) + stepMs).toISOString();
    await transaction.updateTable('runs').set({ started_at: moved }).where('id', '=', id).execute();
  }
}

async function hasOpenRun(db: Database, bootId: string): Promise<boolean> {
  const row = await db
    .selectFrom('runs')
    .select('id')
    .where('ended_at', 'is', null)
    .where('boot_id', '=', bootId)
    .limit(1)
    .executeTakeFirst();
  return row !== undefined;
}
