import { DatabaseSync, type StatementSync, type SQLInputValue } from 'node:sqlite';
import { SqliteAdapter, SqliteDialect, type SqliteDatabase, type SqliteStatement } from 'kysely';
import { fullDisk, LogOnDisk } from './log-on-disk.ts';
import { SqliteDriver } from './sqlite-driver.ts';
import type { StoreDialect } from './store-dialect.ts';

/** Statements kept prepared. The set of queries is fixed and smaller than this. */
const MAX_PREPARED = 256;
const BUSY_TIMEOUT_MS = 5000;
const SQLITE_FULL = 13;
/** SQLITE_READONLY, SQLITE_IOERR and SQLITE_CANTOPEN. */
const DISK_FAILURES: ReadonlySet<number> = new Set([8, 10, 14]);
/** An extended code of SQLite has more in the bits above. */
const PRIMARY_CODE = 0xff;
/**
 * What is noted of an idempotency key by itself: that it is used, by whom, and what came of it. Whatever the call changes is committed
 * after the claim and before the end, and that commit brings the claim to the disk with it. Should the power fail, a key is at worst as
 * if its server had died a moment before, and what was under way inside sandboxes is gone with them.
 */
const OF_KEY_ALONE = /^(insert into|update) "idempotency"/;
/** Changes that SQLite does not count. */
const OF_TABLES = /^(create|alter|drop) /i;

/** Kysely over the SQLite that Node brings. What a commit said is on the disk, also when the power fails; but for keys alone. */
export function sqliteDialect(path: string, log: LogOnDisk = new LogOnDisk(path)): StoreDialect {
  let opened: OpenDatabase | undefined;
  let driver: SqliteDriver | undefined;
  const open = () => (opened = openDatabase(path, log));
  const dialect = new SqliteDialect({ database: async () => await Promise.resolve(open()) });
  return {
    changeStamp: () => opened?.stamp(),
    whenCommitted: (tell) => driver?.whenCommitted(tell),
    findFault: () => log.findFault(),
    createAdapter: () => new SqliteStoreAdapter(),
    createDriver: () =>
      (driver = new SqliteDriver(dialect.createDriver(), () => opened?.takeChange() ?? false, log)),
    createIntrospector: (db) => dialect.createIntrospector(db),
    createQueryCompiler: () => dialect.createQueryCompiler(),
  };
}

class SqliteStoreAdapter extends SqliteAdapter {
  /** SQLite undoes DDL with its transaction, so a migration that fails half-way leaves nothing. */
  override get supportsTransactionalDdl(): boolean {
    return true;
  }

  /** The driver gives its one connection to one caller at a time, and has it back before the disk has what was committed. */
  override get supportsMultipleConnections(): boolean {
    return true;
  }
}

interface OpenDatabase extends SqliteDatabase {
  readonly stamp: () => string;
  /** Whether anything that the disk must have was committed since this was last asked. */
  readonly takeChange: () => boolean;
}

function openDatabase(path: string, log: LogOnDisk): OpenDatabase {
  const database = new DatabaseSync(path, { timeout: BUSY_TIMEOUT_MS });
  // The log is brought to the disk by the driver; SQLite itself waits for it before it copies from it, so the store is whole in any case.
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
    // The one counts what this connection changed, the other changes with every commit of somebody else.
    stamp: () => `${changes()}:${Number(others.get()?.['data_version'])}`,
    takeChange: () => {
      const [before, hadNewTables] = [known, hasNewTables];
      [known, hasNewTables] = [changes(), false];
      return known !== before || hadNewTables;
    },
    close: () => database.close(),
    // A transaction that reads first and writes later could not get the write lock any more once another process wrote.
    prepare: (sql) => {
      // SQLite has ended the transaction itself when the disk was full; asking it again would hide that error.
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

/** `whenDone` is told after it was run. */
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

/** The query builder passes on what the typed tables admit: text, numbers and null. */
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
