import { setTimeout as delay } from 'node:timers/promises';
import type { Database } from './database.ts';
import { PlatformError } from '@svc/contract';
import { dialectOf } from './store-dialect.ts';
import { isTransient } from './transient-failure.ts';

const MAX_ATTEMPTS = 5;
const FIRST_PAUSE_MS = 10;
/** The engine looks at least once a second whether the disk is full, and then gives some of it back. */
const FULL_PAUSE_MS = 400;

/**
 * Runs `work` in a transaction. PostgreSQL may give up one that stands in another's way, and SQLite one that its disk
 * has no room for; such a one is undone, and done again after a pause, a few times. So `work` must change nothing but the database, or only what it
 * would change in the same way again. What is committed is not done again, also when the disk then fails to take it.
 *
 * `whenCommitted` is called as soon as others can see the change, which may be before the disk has it: for what is worth nothing
 * without it, should the power fail in between.
 */
export async function inTransaction<Result>(
  database: Database,
  work: (transaction: Database) => Promise<Result>,
  whenCommitted: (result: Result) => void = () => undefined,
): Promise<Result> {
  let isCommitted = false;
  const tell = (result: Result) => {
    isCommitted = true;
    whenCommitted(result);
  };
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await once(database, work, tell);
    } catch (error) {
      const isFull = PlatformError.is(error, 'insufficient_storage');
      if (isCommitted || attempt === MAX_ATTEMPTS || !(isFull || isTransient(error))) throw error;
      await delay(isFull ? FULL_PAUSE_MS : Math.random() * FIRST_PAUSE_MS * 2 ** attempt);
    }
  }
}

/**
 * As `inTransaction`, but ends when others can see the change: for what can be found out anew should the power fail before the disk has
 * it. A disk that fails then is told to the next one who waits for it.
 */
export async function inTransactionAhead<Result>(
  database: Database,
  work: (transaction: Database) => Promise<Result>,
): Promise<Result> {
  return await untilCommitted((whenCommitted) => inTransaction(database, work, whenCommitted));
}

/** Ends when `begin` tells that it is committed, or fails before. */
export async function untilCommitted<Result>(
  begin: (whenCommitted: (result: Result) => void) => Promise<unknown>,
): Promise<Result> {
  return await new Promise<Result>((resolve, reject) => {
    begin(resolve).catch(reject);
  });
}

async function once<Result>(
  database: Database,
  work: (transaction: Database) => Promise<Result>,
  whenCommitted: (result: Result) => void,
): Promise<Result> {
  const dialect = dialectOf(database);
  const done = await database.transaction().execute(async (transaction) => {
    const result = await work(transaction);
    dialect?.whenCommitted(() => whenCommitted(result));
    return result;
  });
  if (dialect === undefined) whenCommitted(done);
  return done;
}
