import { sql } from 'kysely';
import type { Database } from './database.ts';

/**
 * The engine is unreachable: marks running sandboxes as temporarily unavailable, because their state is unknown.
 * `node`: only those on this node; absent: all.
 */
export async function markUnavailable(db: Database, recoveryMs: number, node?: string): Promise<void> {
  const now = Date.now();
  const since = new Date(now).toISOString();
  const running = db
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
    .where('removed_at', 'is', null);
  await (node === undefined ? running : running.where('node', '=', node)).execute();
}

/** Sandboxes that were unavailable for too long need a decision and do not recover automatically. */
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
