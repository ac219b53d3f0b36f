import { listMemberships } from '../store/organizations.ts';
import type { Change, RecordedEvent } from './rest-call.ts';

/** What a user or their token can do, they can do in each of their organizations, so each of them hears of it. */
export async function recordEverywhere(change: Change, userId: string, event: RecordedEvent): Promise<void> {
  const memberships = await listMemberships(change.db, userId);
  // In one order for everybody, so that no two calls wait for each other.
  const ids = memberships.map(({ organization }) => organization.id).toSorted();
  for (const id of ids) await change.record(event, id);
}
