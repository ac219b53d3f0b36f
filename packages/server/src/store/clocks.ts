import { readFileSync } from 'node:fs';
import { uptime } from 'node:os';
import { sql } from 'kysely';
import type { Database } from './database.ts';
import { inTransactionAhead } from './in-transaction.ts';

/** Less is no step: the two clocks are not read at the same moment. */
const MIN_STEP_MS = 250;
/** How often it is noted that runs still last. */
export const SEEN_INTERVAL_MS = 10_000;

/** The clock of a host, which can be set, beside the time since its start, which cannot. */
export interface HostClock {
  /** Another one after every start of the host. */
  readonly bootId: string;
  nowMs(): number;
  uptimeMs(): number;
}

/** Of the host that this server shares with its engine. */
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
 * Call it often: it costs nothing while nothing happened. When the clock was set, the starts of runs that last are moved
 * by as much, so that they last as long as they really do; of several servers of one host, one does. Every few seconds it
 * is noted that runs still last, for those that end with their host.
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

/** When the host was last seen in that start of it; undefined: never. */
export async function readLastSeen(db: Database, bootId: string): Promise<string | undefined> {
  const row = await db
    .selectFrom('clocks')
    .select('seen_at')
    .where('boot_id', '=', bootId)
    .executeTakeFirst();
  return row?.seen_at;
}

/** @returns by how much the clock was ahead of the host's start before; the row is locked from here on */
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
