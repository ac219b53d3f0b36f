import type { SandboxReport } from '../orchestrator/orchestrator.ts';
import type { SandboxRecord } from '../store/sandboxes.ts';

/**
 * What brings a record and reality to agreement.
 * - `note`: reality is as wanted, or ended by itself; write down what is seen.
 * - `start`: a start was interrupted; finish it.
 * - `stop`, `remove`: it should be so and is not.
 * - `lost`: it ran, and the orchestrator knows nothing of it any more.
 */
export type Decision = 'note' | 'start' | 'stop' | 'remove' | 'lost' | 'nothing';

export function decide(
  record: Pick<SandboxRecord, 'desired' | 'observed'>,
  report: Pick<SandboxReport, 'state'> | undefined,
): Decision {
  if (record.desired === 'removed') return report === undefined ? 'nothing' : 'remove';
  const isActive = report !== undefined && ['starting', 'running', 'stopping'].includes(report.state);
  if (record.desired === 'stopped') return decideStopped(record, report, isActive);
  const wasRunning = record.observed === 'running' || record.observed === 'temporarily_unavailable';
  if (report === undefined) return wasRunning ? 'lost' : 'start';
  if (wasRunning || isActive) return 'note';
  return 'start';
}

function decideStopped(
  record: Pick<SandboxRecord, 'observed'>,
  report: Pick<SandboxReport, 'state'> | undefined,
  isActive: boolean,
): Decision {
  if (isActive) return 'stop';
  const isKnownToRest = record.observed === 'stopped' || record.observed === 'failed';
  if (isKnownToRest) return 'nothing';
  return report === undefined ? 'lost' : 'note';
}
