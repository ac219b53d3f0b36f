import { isDeepStrictEqual } from 'node:util';
import type { SandboxReport } from '@svc/contract/orchestrator';
import { lifecycleOf } from '../orchestrator/lifecycle-of.ts';
import type { Orchestrator } from '../orchestrator/orchestrator.ts';
import type { SandboxRecord } from '../store/sandboxes.ts';
import { clearPendingValues } from '../store/secrets.ts';
import { announceEnd } from './announce-end.ts';
import { changeOf, isLifecycleStale, isNetworkStale, type Decision } from './decide.ts';
import type { RequestParts } from './engine-request.ts';
import { findCeiling } from './find-ceiling.ts';
import { giveSecrets } from './secret-values.ts';

const ASK_TIMEOUT_MS = 30_000;

interface UpdateParts extends RequestParts {
  readonly orchestrator: Pick<Orchestrator, 'setLifecycle' | 'setNetwork'>;
}

/** Sends changes of network and lifetime of a sandbox to the engine, and records the event of an end that the engine announces. */
export async function updateEngine(
  parts: UpdateParts,
  record: SandboxRecord,
  report: SandboxReport,
  decision: Decision,
): Promise<void> {
  await updateNetwork(parts, record, report, decision);
  if (!isLifecycleStale(record, report)) return await announceEnd(parts.database, record, report);
  // The announced end belongs to the former lifetime.
  await parts.orchestrator.setLifecycle(record.id, lifecycleOf(record.spec), soon());
}

/** What it may reach, and the values of its secrets, which an engine does not keep for ever. */
async function updateNetwork(
  parts: UpdateParts,
  record: SandboxRecord,
  report: SandboxReport,
  decision: Decision,
): Promise<void> {
  const hasSecrets = (record.spec.network?.secrets?.entries ?? []).length > 0;
  const isDue = record.valuesDue !== null || (hasSecrets && decision === 'start');
  const { networkCeiling: held = null } = report;
  const networkCeiling = await findCeiling(parts.database, parts.networkCeilings, record.organizationId);
  const isHeld = isDeepStrictEqual(held, networkCeiling);
  if (!isDue && isHeld && !isNetworkStale(record, report)) return;
  const { spec, values } = await giveSecrets(parts, record);
  const given = Object.keys(values).length === 0 ? {} : { secretValues: values };
  await parts.orchestrator.setNetwork(
    record.id,
    { ...changeOf({ spec }, report), ...given, networkCeiling },
    soon(),
  );
  if (record.valuesDue !== null) await clearPendingValues(parts.database, record);
}

function soon(): AbortSignal {
  return AbortSignal.timeout(ASK_TIMEOUT_MS);
}
