import { randomUUID } from 'node:crypto';
import { DEFAULT_DISK_MIB, DEFAULT_MEMORY_MIB, DEFAULT_VCPUS, type SandboxSpec } from '@svc/contract';
import type { Database, RunRow } from './database.ts';

export interface OpenedRun {
  /** False: it was noted before. */
  readonly isNew: boolean;
  /** An earlier run whose end nobody saw, and which therefore ended at the latest when this one began. */
  readonly cutOff: RunRow | undefined;
}

/** What a run is charged for. */
export type RunSizes = Pick<RunRow, 'vcpus' | 'memory_mib' | 'disk_mib'>;

export function sizesOf({ resources }: SandboxSpec): RunSizes {
  return {
    vcpus: resources?.vcpus ?? DEFAULT_VCPUS,
    memory_mib: resources?.memory_mib ?? DEFAULT_MEMORY_MIB,
    disk_mib: resources?.disk_size_mib ?? DEFAULT_DISK_MIB,
  };
}

/** Notes in the caller's transaction that a sandbox runs since `startedAt`. Noting the same run again changes nothing. */
export async function openRun(
  transaction: Database,
  { id: sandboxId, organizationId, spec }: { id: string; organizationId: string; spec: SandboxSpec },
  startedAt: string,
): Promise<OpenedRun> {
  const cutOff = await transaction
    .updateTable('runs')
    .set({ ended_at: startedAt, end_reason: 'unknown' })
    .where('sandbox_id', '=', sandboxId)
    .where('ended_at', 'is', null)
    .where('started_at', '<', startedAt)
    .returningAll()
    .executeTakeFirst();
  const inserted = await transaction
    .insertInto('runs')
    .values({
      id: randomUUID(),
      sandbox_id: sandboxId,
      organization_id: organizationId,
      ...sizesOf(spec),
      started_at: startedAt,
      ended_at: null,
      end_reason: null,
    })
    .onConflict((conflict) => conflict.doNothing())
    .returning('id')
    .executeTakeFirst();
  return { isNew: inserted !== undefined, cutOff };
}

/** Ends the open run, if there is one. An end before the start, after a clock step, counts as the start. */
export async function closeRun(
  db: Database,
  sandboxId: string,
  endedAt: string,
  reason: string,
): Promise<RunRow | undefined> {
  const open = await db
    .selectFrom('runs')
    .select(['id', 'started_at'])
    .where('sandbox_id', '=', sandboxId)
    .where('ended_at', 'is', null)
    .executeTakeFirst();
  if (open === undefined) return undefined;
  const end = endedAt < open.started_at ? open.started_at : endedAt;
  return await db
    .updateTable('runs')
    .set({ ended_at: end, end_reason: reason })
    .where('id', '=', open.id)
    .returningAll()
    .executeTakeFirst();
}

export async function listRuns(db: Database, sandboxId: string): Promise<readonly RunRow[]> {
  return await db
    .selectFrom('runs')
    .selectAll()
    .where('sandbox_id', '=', sandboxId)
    .orderBy('started_at')
    .execute();
}
