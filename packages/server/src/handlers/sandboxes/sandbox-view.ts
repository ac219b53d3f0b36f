import type { Sandbox, SandboxStatus } from '@svc/contract/rest';
import type { RestCall } from '../../dispatch/rest-call.ts';
import type { SandboxRecord } from '../../store/sandboxes.ts';
import { isReferenceClient } from './reference-client.ts';
import { toCreateShape, toRequestedView, toSpecView } from './spec-view.ts';

/** It refuses a whole answer with an unknown state; these are the nearest known ones. */
const KNOWN_STATUS: Partial<Record<SandboxStatus, SandboxStatus>> = {
  temporarily_unavailable: 'starting',
  recovery_decision_required: 'failed',
};

/** A sandbox as the control plane shows it to this client. */
export function viewFor(call: Pick<RestCall, 'userAgent'>): (record: SandboxRecord) => Sandbox {
  return isReferenceClient(call) ? toReferenceView : toSandboxView;
}

function toSandboxView(record: SandboxRecord): Sandbox {
  const spec = toSpecView(record);
  return {
    id: record.id,
    org_id: record.organizationId,
    name: record.name,
    slug: record.slug,
    status: record.observed,
    status_reason: record.observed === 'starting' ? record.statusReason : null,
    ephemeral: record.isEphemeral,
    node: record.node,
    isolation: record.isolation,
    ...(spec === undefined ? {} : { spec }),
    ...(spec === undefined || record.observed === 'failed' ? { requested: toRequestedView(record) } : {}),
    created_at: record.createdAt,
    started_at: record.startedAt,
    stopped_at: record.endedAt,
    last_failure_message: record.failureMessage,
    temporarily_unavailable_since: record.unavailableSince,
    automatic_recovery_ends_at: record.recoveryEndsAt,
    ends_at: endOf(record),
  };
}

function endOf({ observed, startedAt, spec }: SandboxRecord): string | null {
  const seconds = spec.lifecycle?.max_duration_secs ?? null;
  if (observed !== 'running' || startedAt === null || seconds === null) return null;
  return new Date(Date.parse(startedAt) + seconds * 1000).toISOString();
}

/** All adaptions for that client. It reads `spec` only in the shape that it sends, and silently ignores every other. */
function toReferenceView(record: SandboxRecord): Sandbox {
  const { requested: _requested, ...view } = toSandboxView(record);
  const spec = toCreateShape(record);
  const status = KNOWN_STATUS[view.status] ?? view.status;
  // Not according to the table: no other client gets this.
  return { ...view, ...(spec === undefined ? {} : { spec }), status } as Sandbox;
}
