import { randomUUID } from 'node:crypto';
import { DEFAULT_DISK_MIB, DEFAULT_MEMORY_MIB, DEFAULT_VCPUS, type SandboxSpec } from '@svc/contract';
import type { Database, RunRow } from './database.ts';

/** Notes that a sandbox runs since `startedAt`. Noting the same run again changes nothing. */
export async function openRun(
  db: Database,
  sandboxId: string,
  startedAt: string,
  spec: SandboxSpec,
): Promise<void> {
  await db
    .updateTable('runs')
    .set({ ended_at: startedAt, end_reason: 'unknown' })
    .where('sandbox_id', '=', sandboxId)
    .where('ended_at', 'is', null)
    // An earlier run whose end nobody saw cannot have lasted longer than until the next one.
    .where('started_at', '<', startedAt)
    .execute();
  await db
    .insertInto('runs')
    .values({
      id: randomUUID(),
      sandbox_id: sandboxId,
      vcpus: spec.resources?.vcpus ?? DEFAULT_VCPUS,
      memory_mib: spec.resources?.memory_mib ?? DEFAULT_MEMORY_MIB,
      disk_mib: spec.resources?.disk_size_mib ?? DEFAULT_DISK_MIB,
      started_at: startedAt,
      ended_at: null,
      end_reason: null,
    })
    .onConflict((conflict) => conflict.doNothing())
    .execute();
}

/** Ends the open run, if there is one. An end before the start, after a clock step, counts as the start. */
export async function closeRun(
  db: Database,
  sandboxId: string,
  endedAt: string,
  reason: string,
): Promise<void> {
  const open = await db
    .selectFrom('runs')
    .select(['id', 'started_at'])
    .where('sandbox_id', '=', sandboxId)
    .where('ended_at', 'is', null)
    .executeTakeFirst();
  if (open === undefined) return;
  const end = endedAt < open.started_at ? open.started_at : endedAt;
  await db.updateTable('runs').set({ ended_at: end, end_reason: reason }).where('id', '=', open.id).execute();
}

export async function listRuns(db: Database, sandboxId: string): Promise<readonly RunRow[]> {
  return await db
    .selectFrom('runs')
    .selectAll()
    .where('sandbox_id', '=', sandboxId)
    .orderBy('started_at')
    .execute();
}
