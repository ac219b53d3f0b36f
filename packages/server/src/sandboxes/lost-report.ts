import type { SandboxReport } from '@svc/contract/orchestrator';
import type { SandboxRecord } from '../store/sandboxes.ts';

/** What stands for the report of a sandbox that the engine does not know. */
export function lostReport(record: SandboxRecord): SandboxReport {
  const wasWanted = record.desired === 'running';
  const message = wasWanted ? 'the engine no longer knows this sandbox' : 'it was stopped';
  return {
    id: record.id,
    state: wasWanted ? 'failed' : 'stopped',
    isolation: record.isolation,
    resolved: null,
    startedAt: record.startedAt,
    endedAt: new Date().toISOString(),
    end: { reason: wasWanted ? 'lost' : 'stopped', message },
  };
}
