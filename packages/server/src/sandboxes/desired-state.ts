import { checkRunQuota } from '../accounting/check-quotas.ts';
import type { Database } from '../store/database.ts';
import { removeSandbox } from '../store/new-sandbox.ts';
import type { OrganizationRecord } from '../store/organizations.ts';
import { updateSandbox, type EventCaller, type SandboxRecord } from '../store/sandboxes.ts';
import { describeRun, recordSandboxEvent } from './sandbox-events.ts';
import { closeRun } from '../store/runs.ts';
import { PlatformError } from '@svc/contract';
import type { ObservedState } from '../store/sandbox-moves.ts';

/** The states in which each request is legal. `again`: the request is in progress already, so repeating it changes nothing. */
const LEGAL = {
  start: { states: ['created', 'stopped', 'failed'], again: ['starting'] },
  stop: {
    states: ['starting', 'running', 'temporarily_unavailable', 'recovery_decision_required'],
    again: ['stopping'],
  },
  recover: { states: ['temporarily_unavailable', 'recovery_decision_required'], again: [] },
} as const satisfies Record<string, Record<'states' | 'again', readonly ObservedState[]>>;

/**
 * Stores the desired state in the caller's transaction, with the organization locked. After a crash another
 * server brings it about. Repeating a request in progress changes nothing.
 */

/** @throws PlatformError `invalid_state_transition`, `quota_exceeded` */
export async function requestStart(
  transaction: Database,
  organization: OrganizationRecord,
  record: SandboxRecord,
  caller: EventCaller,
): Promise<SandboxRecord> {
  if (!needsChange('start', record)) return record;
  await checkRunQuota(transaction, organization, record);
  return await updateSandbox(transaction, record, {
    desired: 'running',
    observed: 'starting',
    statusReason: 'scheduling',
    failureCode: null,
    failureMessage: null,
    requestedBy: caller,
  });
}

/** @throws PlatformError `invalid_state_transition` */
export async function requestStop(
  transaction: Database,
  record: SandboxRecord,
  caller: EventCaller,
): Promise<SandboxRecord> {
  if (!needsChange('stop', record)) return record;
  return await updateSandbox(transaction, record, { ...STOPPING, requestedBy: caller });
}

const STOPPING = {
  desired: 'stopped',
  observed: 'stopping',
  statusReason: null,
  unavailableSince: null,
  recoveryEndsAt: null,
} as const;

/** Legal in every state. */
export async function requestRemoval(
  transaction: Database,
  record: SandboxRecord,
  caller: EventCaller,
): Promise<SandboxRecord> {
  const run = await closeRun(transaction, record.id, new Date().toISOString(), 'removed');
  await recordSandboxEvent(transaction, 'sandbox_deleted', record, caller, run && describeRun(run));
  return await removeSandbox(transaction, record, caller);
}

export type RecoveryAction = 'wait' | 'restart' | 'stop';

/** @throws PlatformError `invalid_state_transition` */
export async function requestRecovery(
  transaction: Database,
  record: SandboxRecord,
  action: RecoveryAction,
  recoveryMs: number,
  caller: EventCaller,
): Promise<SandboxRecord> {
  needsChange('recover', record);
  await recordSandboxEvent(transaction, 'recovery_chosen', record, caller, { action });
  switch (action) {
    case 'wait':
      return await updateSandbox(transaction, record, {
        observed: 'temporarily_unavailable',
        recoveryEndsAt: new Date(Date.now() + recoveryMs).toISOString(),
      });
    case 'restart':
      return await updateSandbox(transaction, record, {
        ...STOPPING,
        desired: 'restarted',
        observed: 'starting',
        statusReason: 'scheduling',
        requestedBy: caller,
      });
    case 'stop':
      return await updateSandbox(transaction, record, { ...STOPPING, requestedBy: caller });
    default:
      return action satisfies never;
  }
}

type Verb = keyof typeof LEGAL;

/** @returns whether there is anything to do @throws PlatformError `invalid_state_transition` naming the state */
function needsChange(verb: Verb, { name, observed }: SandboxRecord): boolean {
  const { states, again }: Record<'states' | 'again', readonly ObservedState[]> = LEGAL[verb];
  if (states.includes(observed)) return true;
  if (again.includes(observed)) return false;
  const message = `Sandbox '${name}' is ${observed}; ${verb} is possible when it is ${listStates([...states, ...again])}`;
  throw new PlatformError('invalid_state_transition', message, { details: { state: observed, verb } });
}

function listStates(states: readonly string[]): string {
  return states.length < 2 ? states.join('') : `${states.slice(0, -1).join(', ')} or ${states.at(-1)}`;
}
