import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { promisify } from 'node:util';
import { sql } from 'kysely';
import { openOnFakeDisk, type FakeDisk } from '../testing/fake-disk.ts';
import { makeFolder } from '../testing/test-server.ts';
import type { Database } from './database.ts';
import { claimKey } from './idempotency.ts';
import { inTransaction, inTransactionAhead } from './in-transaction.ts';
import { openStore } from './open-store.ts';
import { listSandboxes } from './sandboxes.ts';
import { sqliteDialect } from './sqlite.ts';
import { dialectOf } from './store-dialect.ts';
import { everySuite } from './every.suite.ts';

everySuite('SQLite', async (t) => {
  const folder = await makeFolder(t);
  return async () => {
    const database = await openStore(sqliteDialect(join(folder, 'store.db')));
    t.after(() => database.destroy());
    return database;
  };
});

test('SQLite keeps a write-ahead log, whole in any case, and checks references', async (t) => {
  const { database } = await openWithDisk(t);
  assert.equal(await pragma(database, 'journal_mode'), 'wal');
  assert.equal(await pragma(database, 'synchronous'), 1);
  assert.equal(await pragma(database, 'foreign_keys'), 1);
});

test('a change is answered when it is on the disk, and meanwhile others are served', async (t) => {
  const { database, disk } = await openWithDisk(t);
  disk.hold();
  let isAnswered = false;
  const changed = sql`insert into seen values (1)`.execute(database).then(() => (isAnswered = true));
  assert.equal(await countSeen(database), 1, 'a read waits for no disk');
  await disk.isAsked();
  assert.equal(isAnswered, false);
  disk.letGo();
  await changed;
  assert.equal(disk.turns, 1);
});

test('commits during a flush share the next flush', async (t) => {
  const { database, disk } = await openWithDisk(t);
  disk.hold();
  const first = sql`insert into seen values (1)`.execute(database);
  await disk.isAsked();
  const others = Array.from({ length: 20 }, async (_, number) =>
    database.transaction().execute(async (transaction) => {
      await sql`insert into seen values (${number})`.execute(transaction);
    }),
  );
  while ((await countSeen(database)) < 21) await new Promise(setImmediate);
  disk.letGo();
  await Promise.all([first, ...others]);
  assert.equal(disk.turns, 2);
});

test('a transaction without changes is not flushed', async (t) => {
  const { database, disk } = await openWithDisk(t);
  await sql`update seen set at_claim = 2`.execute(database);
  await assert.rejects(
    database.transaction().execute(async (transaction) => {
      await sql`insert into seen values (1)`.execute(transaction);
      throw new Error('undone');
    }),
  );
  await countSeen(database);
  assert.equal(disk.turns, 0);
  await sql`create table other (id integer)`.execute(database);
  assert.equal(disk.turns, 1, 'SQLite counts no changes of tables');
});

const FAILS = {
  code: 'unavailable',
  message:
    "The disk of the server's data folder fails (EIO), so nothing can be changed; its operator finds the remedy with `svc doctor`",
};

test('a failing disk fails the callers of unflushed changes, and only them', async (t) => {
  const { database, disk } = await openWithDisk(t);
  disk.fail(Object.assign(new Error('i/o error'), { code: 'EIO' }));
  await assert.rejects(sql`insert into seen values (1)`.execute(database), FAILS);
  assert.equal(dialectOf(database)?.findFault()?.message, FAILS.message);
  disk.fail(Object.assign(new Error('no space'), { code: 'ENOSPC' }));
  await assert.rejects(sql`insert into seen values (1)`.execute(database), { code: 'insufficient_storage' });
  disk.fail(undefined);
  await sql`insert into seen values (1)`.execute(database);
  assert.equal(dialectOf(database)?.findFault(), undefined);
  assert.equal(await countSeen(database), 3);
});

test('the note about a key does not wait for a flush, except in a transaction', async (t) => {
  const { database, disk } = await openWithDisk(t);
  const claim = { scope: 'org', key: 'one', owner: 'me' };
  await claimKey(database, claim, 'print', 1000);
  assert.equal(disk.turns, 0);
  await database.transaction().execute(async (transaction) => {
    await claimKey(transaction, { ...claim, key: 'two' }, 'print', 1000);
  });
  assert.equal(disk.turns, 1);
});

test('a commit is reported before it is flushed, and a rollback is not', async (t) => {
  const { database, disk } = await openWithDisk(t);
  const insert = async (transaction: Database) => {
    await sql`insert into seen values (1)`.execute(transaction);
    return 'made';
  };
  const reported: string[] = [];
  disk.hold();
  const changed = inTransaction(database, insert, (result) => reported.push(result));
  await disk.isAsked();
  assert.deepEqual([reported, await countSeen(database)], [['made'], 1]);
  disk.letGo();
  assert.equal(await changed, 'made');
  const refuse = async (transaction: Database) => {
    await insert(transaction);
    throw new Error('refused');
  };
  await assert.rejects(
    inTransaction(database, refuse, () => reported.push('undone')),
    /refused/,
  );
  await inTransaction(database, insert);
  assert.deepEqual([reported, await countSeen(database)], [['made'], 2]);
});

test('a committed transaction is not repeated when the flush fails on a full disk', async (t) => {
  const { database, disk } = await openWithDisk(t);
  const insert = async (transaction: Database) => {
    await sql`insert into seen values (1)`.execute(transaction);
  };
  disk.fail(Object.assign(new Error('no space'), { code: 'ENOSPC' }));
  const reported: string[] = [];
  await assert.rejects(
    inTransaction(database, insert, () => reported.push('committed')),
    { code: 'insufficient_storage' },
  );
  assert.deepEqual([reported, await countSeen(database)], [['committed'], 1]);
  await inTransactionAhead(database, insert);
  disk.fail(undefined);
  assert.equal(await countSeen(database), 2);
});

test('a change that need not be waited for is over before the disk has it, and fails like any other', async (t) => {
  const { database, disk } = await openWithDisk(t);
  disk.hold();
  const insert = async (transaction: Database) => {
    await sql`insert into seen values (1)`.execute(transaction);
  };
  await inTransactionAhead(database, insert);
  assert.equal(await countSeen(database), 1);
  disk.fail(Object.assign(new Error('i/o error'), { code: 'EIO' }));
  disk.letGo();
  await inTransactionAhead(database, insert);
  await assert.rejects(inTransaction(database, insert), FAILS);
  const refuse = async () => {
    await Promise.resolve();
    throw new Error('refused');
  };
  await assert.rejects(inTransactionAhead(database, refuse), /refused/);
});

test('SQLite is brought up to date by several processes at once', async (t) => {
  const path = join(await makeFolder(t), 'store.db');
  const program = `
    const { openStore } = await import(${JSON.stringify(join(import.meta.dirname, 'open-store.ts'))});
    const { sqliteDialect } = await import(${JSON.stringify(join(import.meta.dirname, 'sqlite.ts'))});
    const database = await openStore(sqliteDialect(${JSON.stringify(path)}));
    await database.destroy();`;
  const run = promisify(execFile);
  await Promise.all(
    Array.from({ length: 3 }, () => run(process.execPath, ['--input-type=module', '--eval', program])),
  );
  const database = await openStore(sqliteDialect(path));
  t.after(() => database.destroy());
  assert.deepEqual(await listSandboxes(database), []);
});

/** A store whose disk has been asked for nothing yet. */
async function openWithDisk(t: TestContext): Promise<{ database: Database; disk: FakeDisk }> {
  const { database, disk } = await openOnFakeDisk(t);
  t.after(() => database.destroy());
  await sql`create table seen (at_claim integer)`.execute(database);
  disk.turns = 0;
  return { database, disk };
}

async function countSeen(database: Database): Promise<number> {
  const { rows } = await sql<{ count: number }>`select count(*) as count from seen`.execute(database);
  return rows[0]?.count ?? 0;
}

async function pragma(database: Database, name: string): Promise<unknown> {
  const { rows } = await sql<Record<string, unknown>>`pragma ${sql.raw(name)}`.execute(database);
  return rows[0]?.[name];
}
