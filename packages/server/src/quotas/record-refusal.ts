import { PlatformError } from '@svc/contract';
import type { Database } from '../store/database.ts';
import { appendEvent, type Actor } from '../store/events.ts';

/**
 * Notes that an organization asked for more than it may have. Call it when the transaction that was refused is undone, so
 * that the event stays. Errors of other kinds are none of its business.
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
  await database.transaction().execute((transaction) =>
    appendEvent(transaction, {
      ...event,
      type: 'quota_exceeded',
      category: 'quota',
      payload: { operation, ...error.details },
    }),
  );
}
