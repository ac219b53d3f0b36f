import type { SandboxReport } from '@svc/contract/orchestrator';
import { followClock } from '../store/clocks.ts';
import type { Database } from '../store/database.ts';
import { inTransaction, inTransactionAhead } from '../store/in-transaction.ts';
import { lockOrganization } from '../store/lock-organization.ts';
import { labelsOf } from './labels-of.ts';
import { addLabels, removeSandbox } from '../store/new-sandbox.ts';
import { closeRun, openRun, sizesOf } from '../store/runs.ts';
import { getSandbox, updateSandbox, type SandboxChange, type SandboxRecord } from '../store/sandboxes.ts';
import { describeRun, recordSandboxEvent } from './sandbox-events.ts';

type Known = Pick<SandboxRecord, 'id' | 'organizationId'>;

/**
 * Stores the orchestrator's report of a sandbox, its run and the events of both in one transaction. Changes that callers made meanwhile
 * are not overwritten. Storing a report twice changes nothing. Does not wait for fsync: after a power failure the run that the report is
 * about is gone too.
 * @returns the record as it is now; undefined when there is none
 */
export async function observe(
  db: Database,
  known: Known,
  report: SandboxReport,
): Promise<SandboxRecord | undefined> {
  // Times in a report are relative to the clock as it is now.
  await followClock(db);
  return await inTransactionAhead(db, async (transaction) => {
    await lockOrganization(transaction, known.organizationId);
    const record = await getSandbox(transaction, known.id);
    // The run of a removed sandbox ended with its removal.
    if (record === undefined || record.desired === 'removed') return record;
    switch (report.state) {
      case 'running':
        return await noteRunning(transaction, record, report);
      case 'starting':
      case 'stopping':
        // In transition; its outcome is reported later.
        return record;
      case 'created':
      case 'stopped':
      case 'failed':
        return await noteEnd(transaction, record, report);
      default:
        return report.state satisfies never;
    }
  });
}

async function noteRunning(
  transaction: Database,
  record: SandboxRecord,
  report: SandboxReport,
): Promise<SandboxRecord> {
  const { startedAt, isolation } = report;
  const since = startedAt ?? new Date().toISOString();
  await noteRun(transaction, record, since);
  const seen: SandboxChange = {
    startedAt: since,
    endedAt: null,
    isolation: isolation ?? record.isolation,
    node: report.node ?? record.node,
    ...(await noteResolved(transaction, record, report)),
  };
  // The desired state has changed since, and the observed state says so already.
  if (record.desired !== 'running') return await updateSandbox(transaction, record, seen);
  return await updateSandbox(transaction, record, { ...seen, ...UNTROUBLED, observed: 'running' });
}

/** Stores what the image made of the spec. The image's labels are added to the sandbox's, so that it is found by them. */
async function noteResolved(
  transaction: Database,
  record: SandboxRecord,
  { resolved }: SandboxReport,
): Promise<SandboxChange> {
  if (resolved === null) return {};
  if (record.resolved === null) await addLabels(transaction, record, labelsOf(record.spec, resolved));
  return { resolved };
}

/** A change that depends on the current record. */
export async function amend(
  db: Database,
  known: Known,
  change: (record: SandboxRecord) => SandboxChange,
): Promise<SandboxRecord | undefined> {
  return await inTransaction(db, async (transaction) => {
    await lockOrganization(transaction, known.organizationId);
    const record = await getSandbox(transaction, known.id);
    return record && (await updateSandbox(transaction, record, change(record)));
  });
}

/** Values of a sandbox without failures or outages. */
const UNTROUBLED = {
  statusReason: null,
  failureCode: null,
  failureMessage: null,
  unavailableSince: null,
  recoveryEndsAt: null,
} as const satisfies SandboxChange;

async function noteRun(transaction: Database, record: SandboxRecord, startedAt: string): Promise<void> {
  const { isNew, cutOff } = await openRun(transaction, record, startedAt);
  if (cutOff !== undefined) {
    const details = { ...describeRun(cutOff), reason: 'unknown' };
    await recordSandboxEvent(transaction, 'sandbox_stopped', record, null, details);
  }
  if (!isNew) return;
  const details = {
    started_at: startedAt,
    ...sizesOf(record.spec),
    ...(record.node === null ? {} : { node: record.node }),
  };
  await recordSandboxEvent(transaction, 'sandbox_started', record, record.requestedBy, details);
}

async function noteEnd(
  transaction: Database,
  record: SandboxRecord,
  report: SandboxReport,
): Promise<SandboxRecord> {
  const { startedAt, end } = report;
  const endedAt = report.endedAt ?? new Date().toISOString();
  const isRest =
    record.observed === 'created' || record.observed === 'stopped' || record.observed === 'failed';
  // A start that failed is not a run.
  const hasRun = startedAt !== null && end?.reason !== 'start_failed';
  if (hasRun && !isRest) await noteRun(transaction, record, startedAt);
  const run = await closeRun(transaction, record.id, endedAt, end?.reason ?? 'unknown');
  // The run ended on request, and the next one is the desired state now.
  const isRestart = record.desired === 'restarted';
  // A stop by a caller ended a start in progress: that start has not failed.
  const isGivenUp = record.observed === 'stopping' && !hasRun;
  const isFailure =
    report.state === 'failed' && report.endedAt !== record.endedAt && !isRestart && !isGivenUp;
  const isAsked = record.desired !== 'running' && !isFailure;
  const details = { ...(run && describeRun(run)), reason: end?.reason ?? 'unknown', message: end?.message };
  const type = isFailure ? 'sandbox_failed' : 'sandbox_stopped';
  if (run !== undefined || !isRest) {
    await recordSandboxEvent(transaction, type, record, isAsked ? record.requestedBy : null, details);
  }
  const seen: SandboxChange = {
    ...(await noteResolved(transaction, record, report)),
    ...(hasRun ? { startedAt, endedAt: run?.ended_at ?? record.endedAt ?? endedAt } : {}),
  };
  if (isRestart) return await updateSandbox(transaction, record, { ...seen, desired: 'running' });
  if (isRest) return record.resolved === null ? await updateSandbox(transaction, record, seen) : record;
  const ended = await updateSandbox(transaction, record, {
    ...seen,
    ...UNTROUBLED,
    // A run that ended without a request is not restarted.
    desired: 'stopped',
    observed: isFailure ? 'failed' : 'stopped',
    failureCode: isFailure ? (end?.reason ?? 'unknown') : null,
    failureMessage: isFailure ? (end?.message ?? 'it ended for an unknown reason') : null,
  });
  return ended.isEphemeral && hasRun ? await removeEnded(transaction, ended) : ended;
}

/** An ephemeral sandbox is removed with its run. */
export async function removeEnded(transaction: Database, record: SandboxRecord): Promise<SandboxRecord> {
  await recordSandboxEvent(transaction, 'sandbox_deleted', record, null, { reason: 'ephemeral' });
  return await removeSandbox(transaction, record, null);
}

/**
 * Marks a sandbox as failed that did not reach its desired state in time or whose start failed for good, and sets its desired state to
 * stopped. Does nothing when a caller decided otherwise or it got there after all.
 */
export async function noteFailure(
  db: Database,
  known: Pick<SandboxRecord, 'id' | 'organizationId' | 'observed' | 'stateSince'>,
  failure: { readonly code: string; readonly message: string },
): Promise<SandboxRecord | undefined> {
  return await inTransaction(db, async (transaction) => {
    await lockOrganization(transaction, known.organizationId);
    const record = await getSandbox(transaction, known.id);
    const isStill = record?.observed === known.observed && record.stateSince === known.stateSince;
    if (record === undefined || !isStill || record.desired === 'removed') return record;
    const now = new Date().toISOString();
    const run = await closeRun(transaction, record.id, now, failure.code);
    await recordSandboxEvent(transaction, 'sandbox_failed', record, null, {
      ...(run && describeRun(run)),
      reason: failure.code,
      message: failure.message,
    });
    return await updateSandbox(transaction, record, {
      ...UNTROUBLED,
      desired: 'stopped',
      observed: 'failed',
      failureCode: failure.code,
      failureMessage: failure.message,
      ...(run === undefined ? {} : { endedAt: run.ended_at }),
    });
  });
}
