import { randomUUID } from 'node:crypto';
import { DEFAULT_DISK_MIB, DEFAULT_MEMORY_MIB, DEFAULT_VCPUS, type SandboxSpec } from '@svc/contract';
import { HOST_CLOCK, readLastSeen, type HostClock } from './clocks.ts';
import type { Database, RunRow } from './database.ts';
import { prepareStatement } from './prepare-statement.ts';

export interface OpenedRun {
  /** False: the run was recorded before. */
  readonly isNew: boolean;
  /** An earlier run without an observed end; it ended at the latest when this one began. */
  readonly cutOff: RunRow | undefined;
}

/** The billed sizes of a run. */
export type RunSizes = Pick<RunRow, 'vcpus' | 'memory_mib' | 'disk_mib'>;

export function sizesOf({ resources }: SandboxSpec): RunSizes {
  return {
    vcpus: resources?.vcpus ?? DEFAULT_VCPUS,
    memory_mib: resources?.memory_mib ?? DEFAULT_MEMORY_MIB,
    disk_mib: resources?.disk_size_mib ?? DEFAULT_DISK_MIB,
  };
}

/** Records, in the caller's transaction, that a sandbox runs since `startedAt`. Idempotent per run. */
export async function openRun(
  transaction: Database,
  { id: sandboxId, organizationId, spec }: { id: string; organizationId: string; spec: SandboxSpec },
  startedAt: string,
  { bootId }: Pick<HostClock, 'bootId'> = HOST_CLOCK,
): Promise<OpenedRun> {
  const cutOff = await cutOffOther(transaction, sandboxId, startedAt, bootId);
  const {
    rows: [inserted],
  } = await insertRun(transaction, {
    id: randomUUID(),
    sandbox_id: sandboxId,
    organization_id: organizationId,
    ...sizesOf(spec),
    started_at: startedAt,
    ended_at: null,
    end_reason: null,
    boot_id: bootId,
    reported_start: startedAt,
  });
  return { isNew: inserted !== undefined, cutOff };
}

const insertRun = prepareStatement<RunRow, { id: string }>(
  [
    'id',
    'sandbox_id',
    'organization_id',
    'vcpus',
    'memory_mib',
    'disk_mib',
    'started_at',
    'ended_at',
    'end_reason',
    'boot_id',
    'reported_start',
  ],
  (db, row) =>
    db
      .insertInto('runs')
      .values(row)
      .onConflict((conflict) => conflict.doNothing())
      .returning('id'),
);

/**
 * Ends the open run when a later run began, or one after a reboot of the host. A late report of an earlier run
 * changes nothing.
 */
async function cutOffOther(
  transaction: Database,
  sandboxId: string,
  startedAt: string,
  bootId: string,
): Promise<RunRow | undefined> {
  const open = await findOpenRun(transaction, sandboxId);
  if (open === undefined || open.reported_start === startedAt) return undefined;
  if (isOfOtherBoot(open, bootId)) {
    const isKnown = await transaction
      .selectFrom('runs')
      .select('id')
      .where('sandbox_id', '=', sandboxId)
      .where('reported_start', '=', startedAt)
      .executeTakeFirst();
    return isKnown === undefined
      ? await endRun(transaction, open, await lastSeenOf(transaction, open, startedAt), 'unknown')
      : undefined;
  }
  return open.started_at < startedAt ? await endRun(transaction, open, startedAt, 'unknown') : undefined;
}

/**
 * Ends the open run, if there is one. An end before the start is set to the start. A run that ended with its host
 * ends when it was last seen.
 */
export async function closeRun(
  db: Database,
  sandboxId: string,
  endedAt: string,
  reason: string,
  { bootId }: Pick<HostClock, 'bootId'> = HOST_CLOCK,
): Promise<RunRow | undefined> {
  const open = await findOpenRun(db, sandboxId);
  if (open === undefined) return undefined;
  const isLost = reason === ENDED_WITH_HOST && isOfOtherBoot(open, bootId);
  return await endRun(db, open, isLost ? await lastSeenOf(db, open, endedAt) : endedAt, reason);
}

/** The engine's end reason of a run that was open when its host went down. */
const ENDED_WITH_HOST = 'host_restart';

async function findOpenRun(db: Database, sandboxId: string): Promise<RunRow | undefined> {
  return (await selectOpenRun(db, { sandboxId })).rows[0];
}

const selectOpenRun = prepareStatement<{ readonly sandboxId: string }, RunRow>(
  ['sandboxId'],
  (db, { sandboxId }) =>
    db.selectFrom('runs').selectAll().where('sandbox_id', '=', sandboxId).where('ended_at', 'is', null),
);

/** Times before and after a reboot are of different clocks and cannot be compared. */
function isOfOtherBoot(run: RunRow, bootId: string): boolean {
  return run.boot_id !== null && run.boot_id !== bootId;
}

async function lastSeenOf(db: Database, run: RunRow, otherwise: string): Promise<string> {
  return (await readLastSeen(db, run.boot_id ?? '')) ?? otherwise;
}

async function endRun(
  db: Database,
  { id, started_at: start }: RunRow,
  endedAt: string,
  reason: string,
): Promise<RunRow | undefined> {
  const end = endedAt < start ? start : endedAt;
  return (await updateEnd(db, { id, end, reason })).rows[0];
}

const updateEnd = prepareStatement<Readonly<Record<'id' | 'end' | 'reason', string>>, RunRow>(
  ['id', 'end', 'reason'],
  (db, { id, end, reason }) =>
    db.updateTable('runs').set({ ended_at: end, end_reason: reason }).where('id', '=', id).returningAll(),
);

export async function listRuns(db: Database, sandboxId: string): Promise<readonly RunRow[]> {
  return await db
    .selectFrom('runs')
    .selectAll()
    .where('sandbox_id', '=', sandboxId)
    .orderBy('started_at')
    .execute();
}
