import type { Dialect } from 'kysely';
import type { PlatformError } from '@svc/contract/errors';
import type { Database } from './database.ts';

/** A dialect with extra functions of its database. */
export interface StoreDialect extends Dialect {
  /** A cheap value that differs after any change by any connection; undefined before the database is open. */
  readonly changeStamp: () => string | undefined;
  /**
   * Call it in a transaction: `listener` is called when the transaction is committed and visible, before fsync. It is not
   * called after a rollback.
   */
  readonly whenCommitted: (listener: () => void) => void;
  /** Why the disk of the database cannot be written, determined without a write; undefined: it can. */
  readonly findFault: () => PlatformError | undefined;
}

const dialects = new WeakMap<Database, StoreDialect>();

export function noteDialect(database: Database, dialect: Dialect): void {
  if ('changeStamp' in dialect) dialects.set(database, dialect as StoreDialect);
}

/** Undefined for PostgreSQL: its commits are durable when visible, and changes cannot be detected cheaply. */
export function dialectOf(database: Database): StoreDialect | undefined {
  return dialects.get(database);
}
