import { sql } from 'kysely';
import type { Database } from '../store/database.ts';
import { listSandboxesIn } from '../store/sandboxes.ts';
import { deadlineOf } from './deadlines.ts';
import { noteFailure } from './observe.ts';

/** The orchestrator went away: what ran may still run, but nobody can say. */
export async function markUnavailable(db: Database, recoveryMs: number): Promise<void> {
  const now = Date.now();
  const since = new Date(now).toISOString();
  await db
    .updateTable('sandboxes')
    .set({
      observed: 'temporarily_unavailable',
      unavailable_since: since,
      recovery_ends_at: new Date(now + recoveryMs).toISOString(),
      state_since: since,
      updated_at: since,
      version: sql<number>`version + 1`,
    })
    .where('observed', '=', 'running')
    .where('desired', '=', 'running')
    .where('removed_at', 'is', null)
    .execute();
}

/** What was unavailable for too long does not recover by itself any more. */
export async function requireDecisions(db: Database): Promise<void> {
  const now = new Date().toISOString();
  await db
    .updateTable('sandboxes')
    .set({
      observed: 'recovery_decision_required',
      state_since: now,
      updated_at: now,
      version: sql<number>`version + 1`,
    })
    .where('observed', '=', 'temporarily_unavailable')
    .where('recovery_ends_at', '<=', now)
    .where('removed_at', 'is', null)
    .execute();
}

/** What has not arrived where it should be, although there was time enough, has failed. */
export async function failOverdue(db: Database): Promise<void> {
  const now = Date.now();
  for (const record of await listSandboxesIn(db, ['starting', 'stopping'])) {
    if (deadlineOf(record) > now) continue;
    const isFull = record.statusReason === 'insufficient_capacity';
    const verb = record.observed === 'starting' ? 'start' : 'stop';
    await noteFailure(db, record, {
      code: isFull ? 'insufficient_capacity' : 'unavailable',
      message: isFull
        ? 'there was no room for it in all the time it waited; free some, and start it again'
        : `the engine did not ${verb} it in time; try again`,
    });
  }
}
