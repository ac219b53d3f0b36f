import type { SandboxReport } from '../orchestrator/orchestrator.ts';
import type { Database } from '../store/database.ts';
import { closeRun, openRun } from '../store/runs.ts';
import { updateSandbox, type SandboxRecord } from '../store/sandboxes.ts';

/** Writes down what the orchestrator says of a sandbox, and its run, in one step. */
export async function observe(db: Database, record: SandboxRecord, report: SandboxReport): Promise<void> {
  const { state, startedAt, endedAt, end } = report;
  const isOver = state === 'stopped' || state === 'failed';
  await db.transaction().execute(async (transaction) => {
    if (startedAt !== null && state !== 'starting') {
      await openRun(transaction, record.id, startedAt, record.spec);
    }
    if (isOver) {
      await closeRun(transaction, record.id, endedAt ?? new Date().toISOString(), end?.reason ?? 'unknown');
    }
    await updateSandbox(transaction, record.id, {
      observed: state,
      startedAt,
      endedAt,
      failureMessage: state === 'failed' ? (end?.message ?? 'it ended for an unknown reason') : null,
      // A run that ended by itself is not begun again.
      ...(isOver && record.desired === 'running' ? { desired: 'stopped' as const } : {}),
    });
  });
}
