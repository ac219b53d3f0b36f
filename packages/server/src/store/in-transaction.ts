import { setTimeout as delay } from 'node:timers/promises';
import type { Database } from './database.ts';
import { PlatformError } from '@svc/contract';
import { dialectOf } from './store-dialect.ts';
import { isTransient } from './transient-failure.ts';

const MAX_ATTEMPTS = 5;
const FIRST_PAUSE_MS = 10;
/** The engine checks at least once a second whether the disk is full, and then frees reserved space. */
const FULL_PAUSE_MS = 400;

/**
 * Runs `work` in a transaction. Retries it a few times, after a pause, when PostgreSQL aborts it because of a
 * conflict or SQLite because its disk is full. So `work` must change only the database, or be repeatable otherwise. A
 * committed transaction is not retried, even if the fsync after it fails.
 *
 * `whenCommitted` is called when the change is visible to other connections, which may be before fsync: for actions
 * that are worthless without the change, should the power fail in between.
 */
export async function inTransaction<Result>(
  database: Database,
  work: (transaction: Database) => Promise<Result>,
  whenCommitted: (result: Result) => void = () => undefined,
): Promise<Result> {
  let isCommitted = false;
  const whenDone = (result: Result) => {
    isCommitted = true;
    whenCommitted(result);
  };
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await once(database, work, whenDone);
    } catch (error) {
      const isFull = PlatformError.is(error, 'insufficient_storage');
      if (isCommitted || attempt === MAX_ATTEMPTS || !(isFull || isTransient(error))) throw error;
      await delay(isFull ? FULL_PAUSE_MS : Math.random() * FIRST_PAUSE_MS * 2 ** attempt);
    }
  }
}

/**
 * Like `inTransaction`, but resolves at commit, before fsync: for changes that can be determined anew after a power
 * failure. An fsync failure is reported to the next caller that waits for one.
 */
export async function inTransactionAhead<Result>(
  database: Database,
  work: (transaction: Database) => Promise<Result>,
): Promise<Result> {
  return await untilCommitted((whenCommitted) => inTransaction(database, work, whenCommitted));
}

/** Resolves when `begin` reports the commit; rejects if it fails before. */
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
