import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { sql } from 'kysely';
import { makeFolder } from '../testing/test-server.ts';
import type { Database } from './database.ts';
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
