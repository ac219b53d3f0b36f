import type { StampedDialect } from './change-stamp.ts';
import { DatabaseSync, type StatementSync, type SQLInputValue } from 'node:sqlite';
import { PlatformError } from '@svc/contract';
import { SqliteAdapter, SqliteDialect, type SqliteDatabase, type SqliteStatement } from 'kysely';

/** Statements kept prepared. The set of queries is fixed and smaller than this. */
const MAX_PREPARED = 256;
const BUSY_TIMEOUT_MS = 5000;
const SQLITE_FULL = 13;
/**
 * What is noted of an idempotency key by itself: that it is used, by whom, and what came of it. Whatever the call changes is committed
 * after the claim and before the end, and that commit brings the claim to the disk with it. Should the power fail, a key is at worst as
 * if its server had died a moment before, and what was under way inside sandboxes is gone with them.
 */
const OF_KEY_ALONE = /^(insert into|update) "idempotency"/;

/** Kysely over the SQLite that Node brings. What a commit said is on the disk, also when the power fails; but for keys alone. */
export function sqliteDialect(path: string): StampedDialect {
  let readStamp: (() => string) | undefined;
  const open = () => {
    const { stamp, ...database } = openDatabase(path);
    readStamp = stamp;
    return database;
  };
  const dialect = new SqliteDialect({ database: async () => await Promise.resolve(open()) });
  return {
    changeStamp: () => readStamp?.(),
    createAdapter: () => new TransactionalAdapter(),
    createDriver: () => dialect.createDriver(),
    createIntrospector: (db) => dialect.createIntrospector(db),
    createQueryCompiler: () => dialect.createQueryCompiler(),
  };
}

/** SQLite undoes DDL with its transaction, so a migration that fails half-way leaves nothing. */
class TransactionalAdapter extends SqliteAdapter {
  override get supportsTransactionalDdl(): boolean {
    return true;
  }
}

function openDatabase(path: string): SqliteDatabase & { readonly stamp: () => string } {
  const database = new DatabaseSync(path, { timeout: BUSY_TIMEOUT_MS });
  database.exec('pragma journal_mode = wal; pragma synchronous = full; pragma foreign_keys = on');
  const prepared = new Map<string, SqliteStatement>();
  const prepare = (sql: string): SqliteStatement => {
    const known = prepared.get(sql);
    if (known !== undefined) return known;
    if (prepared.size >= MAX_PREPARED) prepared.clear();
    const adapted = adapt(database.prepare(sql));
    const statement = OF_KEY_ALONE.test(sql) ? withoutWaiting(database, adapted) : adapted;
    prepared.set(sql, statement);
    return statement;
  };
  const own = database.prepare('select total_changes() as changes');
  const others = database.prepare('pragma data_version');
  return {
    // The one counts what this connection changed, the other changes with every commit of somebody else.
    stamp: () => `${Number(own.get()?.['changes'])}:${Number(others.get()?.['data_version'])}`,
    close: () => database.close(),
    // A transaction that reads first and writes later could not get the write lock any more once another process wrote.
    prepare: (sql) => {
      // SQLite has ended the transaction itself when the disk was full; asking it again would hide that error.
      if (sql === 'rollback' && !database.isTransaction) return NOTHING;
      return prepare(sql === 'begin' ? 'begin immediate' : sql);
    },
  };
}

/** Outside of a transaction it is one of its own, whose end does not wait for the disk. */
function withoutWaiting(database: DatabaseSync, statement: SqliteStatement): SqliteStatement {
  const hurry = <T>(query: () => T): T => {
    if (database.isTransaction) return query();
    database.exec('pragma synchronous = normal');
    try {
      return query();
    } finally {
      database.exec('pragma synchronous = full');
    }
  };
  return {
    reader: statement.reader,
    all: (values) => hurry(() => statement.all(values)),
    run: (values) => hurry(() => statement.run(values)),
    iterate: (values) => statement.iterate(values),
  };
}

const NOTHING: SqliteStatement = {
  reader: false,
  all: () => [],
  run: () => ({ changes: 0, lastInsertRowid: 0 }),
  iterate: () => [].values(),
};

function adapt(statement: StatementSync): SqliteStatement {
  return {
    reader: statement.columns().length > 0,
    all: (values) => explain(() => statement.all(...inputs(values))),
    run: (values) => explain(() => statement.run(...inputs(values))),
    iterate: (values) => statement.iterate(...inputs(values)),
  };
}

/** The query builder passes on what the typed tables admit: text, numbers and null. */
function inputs(values: readonly unknown[]): SQLInputValue[] {
  return values as SQLInputValue[];
}

function explain<T>(query: () => T): T {
  try {
    return query();
  } catch (error) {
    if (error instanceof Error && 'errcode' in error && error.errcode === SQLITE_FULL) {
      const hint = 'the disk of the data directory is full; free some space and try again';
      throw new PlatformError('insufficient_storage', hint, { cause: error });
    }
    throw error;
  }
}
