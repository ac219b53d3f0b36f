import type { Database } from '../store/database.ts';
import { listSandboxesIn } from '../store/sandboxes.ts';
import { deadlineOf } from './deadlines.ts';
import { noteFailure } from './observe.ts';

/** What has not arrived where it should be, although there was time enough, has failed. */
export async function failOverdue(db: Database): Promise<void> {
  const now = Date.now();
  for (const record of await listSandboxesIn(db, ['starting', 'stopping'])) {
    if (deadlineOf(record) > now) continue;
    const isFull = record.statusReason === 'insufficient_capacity';
    const verb = record.observed === 'starting' ? 'start' : 'stop';
    await noteFailure(db, record, {
      code: isFull ? 'insufficient_capacity' : 'unavailable',
      message: isFull
        ? 'there was no room for it in all the time it waited; free some, and start it again'
        : `the engine did not ${verb} it in time; try again`,
    });
  }
}
