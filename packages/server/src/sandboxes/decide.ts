import { isDeepStrictEqual } from 'node:util';
import { resolvePolicy } from '@svc/engine/policy';
import type { SandboxReport } from '../orchestrator/orchestrator.ts';
import type { SandboxRecord } from '../store/sandboxes.ts';

/**
 * What brings a record and reality to agreement.
 * - `note`: reality is as wanted, or ended by itself; write down what is seen.
 * - `start`: it should run and does not; the start is new or was interrupted.
 * - `stop`, `remove`: it should be so and is not.
 * - `lost`: it ran, and the orchestrator knows nothing of it any more.
 */
export type Decision = 'note' | 'start' | 'stop' | 'remove' | 'lost' | 'nothing';

type Wanted = Pick<SandboxRecord, 'desired' | 'observed'>;
type Seen = Pick<SandboxReport, 'state'> | undefined;

export function decide(record: Wanted, report: Seen): Decision {
  if (record.desired === 'removed') return report === undefined ? 'nothing' : 'remove';
  if (record.desired === 'stopped') return decideStopped(record, report);
  // Its next run begins after the end of this one was written down.
  if (record.desired === 'restarted') {
    if (isActive(report)) return 'stop';
    return report === undefined ? 'lost' : 'note';
  }
  return decideRunning(record, report);
}

function decideRunning({ observed }: Wanted, report: Seen): Decision {
  const isYetToRun = observed === 'starting';
  if (report === undefined) return isYetToRun ? 'start' : 'lost';
  // It runs, and nobody has decided yet what is to become of it.
  if (observed === 'recovery_decision_required' && isActive(report)) return 'nothing';
  return isYetToRun && !isActive(report) ? 'start' : 'note';
}

function decideStopped({ observed }: Wanted, report: Seen): Decision {
  if (isActive(report)) return 'stop';
  const isKnownToRest = observed === 'created' || observed === 'stopped' || observed === 'failed';
  if (isKnownToRest) return 'nothing';
  return report === undefined ? 'lost' : 'note';
}

function isActive(report: Seen): boolean {
  return report !== undefined && ['starting', 'running', 'stopping'].includes(report.state);
}

/** Whether it may reach something else than it should: a change was written down, and not carried out yet. */
export function isNetworkStale({ spec }: SandboxRecord, { network }: SandboxReport): boolean {
  return network !== undefined && !isDeepStrictEqual(resolvePolicy(spec.network), resolvePolicy(network));
}

/** Whether the record says already what the orchestrator says of a sandbox that runs as it should. */
export function isNoted(record: SandboxRecord, report: SandboxReport | undefined): boolean {
  return (
    report?.state === 'running' &&
    record.observed === 'running' &&
    record.desired === 'running' &&
    record.startedAt === report.startedAt &&
    (record.resolved !== null || report.resolved === null) &&
    !isNetworkStale(record, report)
  );
}
