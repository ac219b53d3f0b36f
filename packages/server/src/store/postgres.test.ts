import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { pino } from 'pino';
import { openStore } from './open-store.ts';
import { postgresDialect } from './postgres.ts';
import { listSandboxes } from './sandboxes.ts';
import { everySuite } from './every.suite.ts';
import { TestPostgres } from './test-postgres.ts';

const postgres = await TestPostgres.start();
after(() => postgres[Symbol.asyncDispose]());

everySuite('PostgreSQL', async (t) => {
  const url = await postgres.createDatabase();
  return async () => {
    const database = await openStore(postgresDialect(url, pino({ level: 'silent' })));
    t.after(() => database.destroy());
    return database;
  };
});

test('PostgreSQL is brought up to date by several servers at once', async (t) => {
  const url = await postgres.createDatabase();
  const opening = Array.from({ length: 3 }, () => openStore(postgresDialect(url, pino({ level: 'silent' }))));
  for (const database of await Promise.all(opening)) {
    t.after(() => database.destroy());
    assert.deepEqual(await listSandboxes(database), []);
  }
});
