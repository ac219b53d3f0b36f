import { setTimeout as delay } from 'node:timers/promises';
import type { Database } from './database.ts';
import { isTransient } from './transient-failure.ts';

const MAX_ATTEMPTS = 5;
const FIRST_PAUSE_MS = 10;

/**
 * Runs `work` in a transaction. PostgreSQL may give up one that stands in another's way; such a one is undone, and done
 * again after a short pause of random length, a few times. So `work` must change nothing but the database, or only what it
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
      if (attempt === MAX_ATTEMPTS || !isTransient(error)) throw error;
      await delay(Math.random() * FIRST_PAUSE_MS * 2 ** attempt);
    }
  }
}
