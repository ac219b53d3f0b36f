import { listMemberships } from '../store/organizations.ts';
import type { Change, RecordedEvent } from './rest-call.ts';

/** Records an event in each organization of the user, because the user or their token can act in all of them. */
export async function recordEverywhere(change: Change, userId: string, event: RecordedEvent): Promise<void> {
  const memberships = await listMemberships(change.db, userId);
  // Locked in the same order by every call, which prevents deadlocks.
  const ids = memberships.map(({ organization }) => organization.id).toSorted();
  for (const id of ids) await change.record(event, id);
}
