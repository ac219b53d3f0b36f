import { setTimeout as delay } from 'node:timers/promises';
import type { Database } from './database.ts';
import { PlatformError } from '@svc/contract';
import { isTransient } from './transient-failure.ts';

const MAX_ATTEMPTS = 5;
const FIRST_PAUSE_MS = 10;
/** The engine looks at least once a second whether the disk is full, and then gives some of it back. */
const FULL_PAUSE_MS = 400;

/**
 * Runs `work` in a transaction. PostgreSQL may give up one that stands in another's way, and SQLite one that its disk
 * has no room for; such a one is undone, and done again after a pause, a few times. So `work` must change nothing but the database, or only what it
 * would change in the same way again.
 */
export async function inTransaction<Result>(
  database: Database,
  work: (transaction: Database) => Promise<Result>,
): Promise<Result> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await database.transaction().execute(work);
    } catch (error) {
      const isFull = PlatformError.is(error, 'insufficient_storage');
      if (attempt === MAX_ATTEMPTS || !(isFull || isTransient(error))) throw error;
      await delay(isFull ? FULL_PAUSE_MS : Math.random() * FIRST_PAUSE_MS * 2 ** attempt);
    }
  }
}
