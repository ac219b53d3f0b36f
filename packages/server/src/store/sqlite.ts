import { DatabaseSync, type StatementSync, type SQLInputValue } from 'node:sqlite';
import { SqliteAdapter, SqliteDialect, type SqliteDatabase, type SqliteStatement } from 'kysely';
import { fullDisk, LogOnDisk } from './log-on-disk.ts';
import { SqliteDriver } from './sqlite-driver.ts';
import type { StoreDialect } from './store-dialect.ts';

/** Maximum number of prepared statements. The set of queries is fixed and smaller than this. */
const MAX_PREPARED = 256;
const BUSY_TIMEOUT_MS = 5000;
const SQLITE_FULL = 13;
/** SQLITE_READONLY, SQLITE_IOERR and SQLITE_CANTOPEN. */
const DISK_FAILURES: ReadonlySet<number> = new Set([8, 10, 14]);
/** Mask of the primary error code; extended codes use the bits above it. */
const PRIMARY_CODE = 0xff;
/**
 * Statements that write an idempotency key outside a transaction: the claim, the lease and the outcome. They are not
 * flushed separately: the change of the call is committed after the claim and before the end, and its flush
 * includes the claim. After a power failure, a key is at worst in the state as if its server had died a moment
 * earlier, and what was in progress inside sandboxes is gone too.
 */
const OF_KEY_ALONE = /^(insert into|update) "idempotency"/;
/** Changes that `total_changes()` does not count. */
const OF_TABLES = /^(create|alter|drop) /i;

/** Kysely over Node's SQLite. A commit is durable when it resolves, except for writes of idempotency keys alone. */
export function sqliteDialect(path: string, log: LogOnDisk = new LogOnDisk(path)): StoreDialect {
  let opened: OpenDatabase | undefined;
  let driver: SqliteDriver | undefined;
  const open = () => (opened = openDatabase(path, log));
  const dialect = new SqliteDialect({ database: async () => await Promise.resolve(open()) });
  return {
    changeStamp: () => opened?.stamp(),
    whenCommitted: (listener) => driver?.whenCommitted(listener),
    findFault: () => log.findFault(),
    createAdapter: () => new SqliteStoreAdapter(),
    createDriver: () =>
      (driver = new SqliteDriver(dialect.createDriver(), () => opened?.takeChange() ?? false, log)),
    createIntrospector: (db) => dialect.createIntrospector(db),
    createQueryCompiler: () => dialect.createQueryCompiler(),
  };
}

class SqliteStoreAdapter extends SqliteAdapter {
  /** SQLite rolls DDL back with its transaction, so a migration that fails half-way changes nothing. */
  override get supportsTransactionalDdl(): boolean {
    return true;
  }

  /** The driver is a mutex for its one connection, and releases it before the fsync. */
  override get supportsMultipleConnections(): boolean {
    return true;
  }
}

interface OpenDatabase extends SqliteDatabase {
  readonly stamp: () => string;
  /** Whether anything that needs fsync was committed since the last call. */
  readonly takeChange: () => boolean;
}

function openDatabase(path: string, log: LogOnDisk): OpenDatabase {
  const database = new DatabaseSync(path, { timeout: BUSY_TIMEOUT_MS });
  // The driver flushes the log. SQLite flushes it too before each checkpoint, so the store stays consistent.
  database.exec('pragma journal_mode = wal; pragma synchronous = normal; pragma foreign_keys = on');
  const own = database.prepare('select total_changes() as changes');
  const others = database.prepare('pragma data_version');
  const changes = () => Number(own.get()?.['changes']);
  let [known, hasNewTables] = [changes(), false];
  const prepared = new Map<string, SqliteStatement>();
  const prepare = (sql: string): SqliteStatement => {
    const statement = prepared.get(sql);
    if (statement !== undefined) return statement;
    if (prepared.size >= MAX_PREPARED) prepared.clear();
    const fresh = adapt(database.prepare(sql), log, () => {
      if (OF_TABLES.test(sql)) hasNewTables = true;
      else if (sql === 'rollback' || (OF_KEY_ALONE.test(sql) && !database.isTransaction)) known = changes();
    });
    prepared.set(sql, fresh);
    return fresh;
  };
  return {
    // `total_changes` counts changes of this connection, `data_version` changes with every commit of another one.
    stamp: () => `${changes()}:${Number(others.get()?.['data_version'])}`,
    takeChange: () => {
      const [before, hadNewTables] = [known, hasNewTables];
      [known, hasNewTables] = [changes(), false];
      return known !== before || hadNewTables;
    },
    close: () => database.close(),
    // `begin immediate`, because a transaction that reads first cannot get the write lock after another process has
    // written.
    prepare: (sql) => {
      // SQLite has rolled back already when the disk is full; a second rollback would hide that error.
      if (sql === 'rollback' && !database.isTransaction) return NOTHING;
      return prepare(sql === 'begin' ? 'begin immediate' : sql);
    },
  };
}

const NOTHING: SqliteStatement = {
  reader: false,
  all: () => [],
  run: () => ({ changes: 0, lastInsertRowid: 0 }),
  iterate: () => [].values(),
};

/** `whenDone` is called after each run. */
function adapt(statement: StatementSync, log: LogOnDisk, whenDone: () => void): SqliteStatement {
  const run = <T>(query: () => T): T => {
    const result = explain(query, log);
    whenDone();
    return result;
  };
  return {
    reader: statement.columns().length > 0,
    all: (values) => run(() => statement.all(...inputs(values))),
    run: (values) => run(() => statement.run(...inputs(values))),
    iterate: (values) => statement.iterate(...inputs(values)),
  };
}

/** The cast holds: the query builder passes what the typed tables allow, which is text, numbers and null. */
function inputs(values: readonly unknown[]): SQLInputValue[] {
  return values as SQLInputValue[];
}

function explain<T>(query: () => T, log: LogOnDisk): T {
  try {
    return query();
  } catch (error) {
    throw explained(error, log);
  }
}

function explained(error: unknown, log: LogOnDisk): unknown {
  const code = error instanceof Error && 'errcode' in error ? Number(error.errcode) & PRIMARY_CODE : 0;
  if (code === SQLITE_FULL) return fullDisk(error);
  return DISK_FAILURES.has(code) ? log.explainFailure(error) : error;
}
