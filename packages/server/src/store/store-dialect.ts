import type { Dialect } from 'kysely';
import type { PlatformError } from '@svc/contract/errors';
import type { Database } from './database.ts';

/** A dialect that knows more of its database than how to ask it. */
export interface StoreDialect extends Dialect {
  /** Cheaply, another text after any change, by whomever; undefined before the database is open. */
  readonly changeStamp: () => string | undefined;
  /**
   * To be called in a transaction: `tell` is called once that is committed and others can see it, which is before the disk has it. One
   * that is undone is not told of.
   */
  readonly whenCommitted: (tell: () => void) => void;
  /** Why the disk of the database takes no writes, found out without one; undefined: it takes them. */
  readonly findFault: () => PlatformError | undefined;
}

const dialects = new WeakMap<Database, StoreDialect>();

export function noteDialect(database: Database, dialect: Dialect): void {
  if ('changeStamp' in dialect) dialects.set(database, dialect as StoreDialect);
}

/** Undefined: a commit is on the disk when it is seen, and nobody can tell cheaply whether anything changed. */
export function dialectOf(database: Database): StoreDialect | undefined {
  return dialects.get(database);
}
