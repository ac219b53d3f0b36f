import type { Sandbox } from '@svc/contract/rest';
import type { SandboxRecord } from '../../store/sandboxes.ts';
import { toCreateShape, toSpecView } from './spec-view.ts';

/** What each view was made from, for clients that must be shown something else of it. */
const records = new WeakMap<object, SandboxRecord>();

/** A sandbox as the control plane shows it. */
export function toSandboxView(record: SandboxRecord): Sandbox {
  const spec = toSpecView(record);
  const view: Sandbox = {
    id: record.id,
    org_id: record.organizationId,
    name: record.name,
    slug: record.slug,
    status: record.observed,
    status_reason: record.observed === 'starting' ? record.statusReason : null,
    ephemeral: record.isEphemeral,
    isolation: record.isolation,
    ...(spec === undefined ? {} : { spec }),
    created_at: record.createdAt,
    started_at: record.startedAt,
    stopped_at: record.endedAt,
    last_failure_message: record.failureMessage,
    temporarily_unavailable_since: record.unavailableSince,
    automatic_recovery_ends_at: record.recoveryEndsAt,
  };
  records.set(view, record);
  return view;
}

/** The spec of a view in the shape of a create; undefined when it has none, or is no view of a sandbox. */
export function createShapeOf(view: object): ReturnType<typeof toCreateShape> | undefined {
  const record = records.get(view);
  return record && toCreateShape(record);
}

export function isSandboxView(view: object): boolean {
  return records.has(view);
}
