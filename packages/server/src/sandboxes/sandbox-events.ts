import type { Database, RunRow } from '../store/database.ts';
import { appendEvent } from '../store/events.ts';
import type { EventCaller, SandboxRecord } from '../store/sandboxes.ts';

export type SandboxEventType =
  | 'sandbox_created'
  | 'sandbox_started'
  | 'sandbox_stopped'
  | 'sandbox_failed'
  | 'sandbox_deleted'
  | 'sandbox_renamed'
  | 'sandbox_network_changed'
  | 'sandbox_lifecycle_changed'
  | 'sandbox_ending'
  | 'policy_denied'
  | 'secret_violation'
  | 'recovery_chosen';

/** The actor of events without a caller. */
const SERVICE: EventCaller = {
  actor: { kind: 'system', code: 'lifecycle', label: 'Sandbox lifecycle' },
  requestId: null,
  sourceAddress: null,
};

/** Records an event of a sandbox in the caller's transaction. `caller` null: the service itself. */
export async function recordSandboxEvent(
  transaction: Database,
  type: SandboxEventType,
  { id, name, organizationId }: SandboxRecord,
  caller: EventCaller | null,
  details: Readonly<Record<string, unknown>> = {},
  eventId?: string,
): Promise<void> {
  await appendEvent(transaction, {
    ...(caller ?? SERVICE),
    ...(eventId === undefined ? {} : { id: eventId }),
    organizationId,
    type,
    category: 'sandbox',
    payload: { sandbox_id: id, name, ...details },
  });
}

/** Enough to compute usage from events alone. */
export function describeRun(run: RunRow): Readonly<Record<string, unknown>> {
  const { started_at, ended_at, vcpus, memory_mib, disk_mib } = run;
  return { started_at, ended_at, vcpus, memory_mib, disk_mib };
}
