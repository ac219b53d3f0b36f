import { PlatformError } from '@svc/contract';
import { createActorOfCaller } from '../access/actor-of-caller.ts';
import type { OnFailure } from './dispatch.ts';
import type { Database } from '../store/database.ts';
import { inTransaction } from '../store/in-transaction.ts';
import { appendEvent, type Actor } from '../store/events.ts';
import { findOrganization } from '../store/organizations.ts';

/**
 * Records that an organization asked for more than its quota. Call it after the refused transaction was rolled back, so that the event
 * stays. Ignores other errors.
 */
export async function recordRefusal(
  database: Database,
  error: unknown,
  origin: {
    readonly organizationId: string;
    readonly operation: string;
    readonly actor: Actor;
    readonly requestId: string | null;
    readonly sourceAddress: string | null;
  },
): Promise<void> {
  if (!PlatformError.is(error, 'quota_exceeded')) return;
  const { operation, ...event } = origin;
  await inTransaction(database, (transaction) =>
    appendEvent(transaction, {
      ...event,
      type: 'quota_exceeded',
      category: 'quota',
      payload: { operation, ...error.details },
    }),
  );
}

/** The same for the self-hosted surface, whose namespaces are organizations; `explain` as for the control plane. */
export function recordRefusedCalls(
  database: Database,
  explain: (error: unknown, organizationId: string) => Promise<unknown>,
): OnFailure {
  const actorOf = createActorOfCaller(database);
  return async ({ operation, requestId, namespace, caller }, error) => {
    if (!PlatformError.is(error, 'quota_exceeded') && !PlatformError.is(error, 'insufficient_storage'))
      return error;
    const organization = await findOrganization(database, namespace);
    if (organization === undefined) return error;
    const actor = await actorOf(caller);
    const origin = { organizationId: organization.id, operation, actor, requestId, sourceAddress: null };
    await recordRefusal(database, error, origin);
    return await explain(error, organization.id);
  };
}
