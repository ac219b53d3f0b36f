import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { sql } from 'kysely';
import { makeFolder } from '../testing/test-server.ts';
import type { Database } from './database.ts';
import { claimKey } from './idempotency.ts';
import { openStore } from './open-store.ts';
import { listSandboxes } from './sandboxes.ts';
import { sqliteDialect } from './sqlite.ts';
import { everySuite } from './every.suite.ts';

everySuite('SQLite', async (t) => {
  const folder = await makeFolder(t);
  return async () => {
    const database = await openStore(sqliteDialect(join(folder, 'store.db')));
    t.after(() => database.destroy());
    return database;
  };
});

test('SQLite keeps a write-ahead log and waits for the disk at every commit', async (t) => {
  const database = await openStore(sqliteDialect(join(await makeFolder(t), 'store.db')));
  t.after(() => database.destroy());
  assert.equal(await pragma(database, 'journal_mode'), 'wal');
  assert.equal(await pragma(database, 'synchronous'), 2);
  assert.equal(await pragma(database, 'foreign_keys'), 1);
});

test('what is noted of a key alone does not wait for the disk, and in a transaction it does', async (t) => {
  const database = await openStore(sqliteDialect(join(await makeFolder(t), 'store.db')));
  t.after(() => database.destroy());
  await sql`create table seen (at_claim integer)`.execute(database);
  await sql`create trigger look after insert on idempotency begin
    insert into seen select synchronous from pragma_synchronous; end`.execute(database);
  const claim = { scope: 'org', key: 'one', owner: 'me' };
  await claimKey(database, claim, 'print', 1000);
  await database.transaction().execute(async (transaction) => {
    await claimKey(transaction, { ...claim, key: 'two' }, 'print', 1000);
  });
  const { rows } = await sql<{ at_claim: number }>`select at_claim from seen`.execute(database);
  assert.deepEqual(
    rows.map((row) => row.at_claim),
    [1, 2],
  );
  assert.equal(await pragma(database, 'synchronous'), 2, 'whatever comes next waits again');
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

async function pragma(database: Database, name: string): Promise<unknown> {
  const { rows } = await sql<Record<string, unknown>>`pragma ${sql.raw(name)}`.execute(database);
  return rows[0]?.[name];
}
