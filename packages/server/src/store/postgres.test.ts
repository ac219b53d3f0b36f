import assert from 'node:assert/strict';
import { after, test, type TestContext } from 'node:test';
import { PlatformError } from '@svc/contract/errors';
import { sql } from 'kysely';
import { pino } from 'pino';
import { createApiKey, findApiKey } from './api-keys-and-tokens.ts';
import type { Database } from './database.ts';
import { inTransaction } from './in-transaction.ts';
import { lockOrganization } from './lock-organization.ts';
import { openStore } from './open-store.ts';
import { ensureOrganization, findOrganization } from './organizations.ts';
import { postgresDialect } from './postgres.ts';
import { listSandboxes } from './sandboxes.ts';
import { waitUntil } from '@svc/contract/testing';
import { startHealthy } from '../testing/sandboxes.ts';
import { everySuite } from './every.suite.ts';
import { TestPostgres } from '../testing/test-postgres.ts';
import { isTransient } from './transient-failure.ts';

const postgres = await TestPostgres.start();
after(() => postgres[Symbol.asyncDispose]());

// The migrations take longer than most tests, so they run once; the databases of the suites are copies.
const migrated = await postgres.createDatabase();
await (await openStore(postgresDialect(migrated, pino({ level: 'silent' })))).destroy();

everySuite('PostgreSQL', async (t) => {
  const url = await postgres.copyDatabase(migrated);
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

test('a database that goes away is reported as unavailable, and the store continues when it is back', async (t) => {
  const url = await postgres.createDatabase();
  const database = await openStore(postgresDialect(url, pino({ level: 'silent' })));
  t.after(() => database.destroy());
  const isOutageOf = (error: unknown) =>
    PlatformError.is(error, 'unavailable') && error.cause instanceof Error;
  await postgres.whileDown(async () => {
    await assert.rejects(listSandboxes(database), isOutageOf);
    await assert.rejects(listSandboxes(database), isOutageOf);
  });
  assert.deepEqual(await listSandboxes(database), []);
  // Ended in the middle of a statement.
  const endMyself = sql`select pg_terminate_backend(pg_backend_pid())`.execute(database);
  await assert.rejects(endMyself, isOutageOf);
  assert.deepEqual(await listSandboxes(database), []);
});

test(
  'a database that hangs is answered for with 503, shown by health, and used again when it is back',
  { timeout: 120_000 },
  async (t) => {
    const { url, proxy } = await postgres.throughProxy(await postgres.createDatabase());
    t.after(() => proxy[Symbol.asyncDispose]());
    const database = await openStore(postgresDialect(url, pino({ level: 'silent' })));
    const server = await startHealthy(t, { database });
    const create = async (name: string) => await server.rest('POST', '/volumes', { body: { name } });
    const health = async () => (await fetch(`${server.url}/api/v1/health`)).status;
    assert.equal((await create('before')).status, 200);
    assert.equal(await health(), 200);

    proxy.silence();
    // More than there are connections: some wait for one, some for an answer, some for a new connection.
    const refused = await Promise.all(Array.from({ length: 30 }, (_, index) => create(`v${index}`)));
    for (const { status, body } of refused) {
      assert.deepEqual([status, body.error.code], [503, 'unavailable']);
      assert.match(body.error.message, /database does not answer/);
    }
    await waitUntil(async () => (await health()) === 503);
    const { message } = (await (await fetch(`${server.url}/api/v1/health`)).json()) as { message: string };
    assert.match(message, /database does not answer/);

    proxy.speak();
    await waitUntil(async () => (await health()) === 200);
    assert.equal((await create('after')).status, 200);
    // It hangs while the server ends.
    proxy.silence();
    await server.close();
  },
);

test('a statement that waits for a lock too long is given up, and its connection is used again', async (t) => {
  const url = await postgres.createDatabase();
  const limits = { connectMs: 3000, lockMs: 50, statementMs: 60_000, answerMs: 60_000 };
  const database = await openStore(postgresDialect(url, pino({ level: 'silent' }), limits));
  t.after(() => database.destroy());
  await ensureOrganization(database, 'acme');
  await using _held = await postgres.hold(url, 'select * from organizations');
  const change = database.updateTable('organizations').set({ name: 'x' }).execute();
  await assert.rejects(
    change,
    (error) => PlatformError.is(error, 'unavailable') && /too long/.test(error.message),
  );
  assert.equal((await findOrganization(database, 'acme'))?.slug, 'acme');
});

/** Two servers of one database. */
async function openTwice(t: TestContext): Promise<readonly [Database, Database]> {
  // Deadlocks are looked for at once, so that the test does not wait for it.
  const url = `${await postgres.createDatabase()}&options=${encodeURIComponent('-c deadlock_timeout=10ms')}`;
  const open = async () => {
    const database = await openStore(postgresDialect(url, pino({ level: 'silent' })));
    t.after(() => database.destroy());
    return database;
  };
  return [await open(), await open()];
}

test('transactions that stand in each other’s way all go through', async (t) => {
  const [one, two] = await openTwice(t);
  const ids = [await ensureOrganization(one, 'a'), await ensureOrganization(one, 'b')] as const;
  let attempts = 0;
  const bothHoldOne = Promise.withResolvers<void>();
  const lockInOrder = (db: Database, [first, second]: readonly [string, string]) =>
    inTransaction(db, async (transaction) => {
      await lockOrganization(transaction, first);
      attempts += 1;
      if (attempts === 2) bothHoldOne.resolve();
      await bothHoldOne.promise;
      await lockOrganization(transaction, second);
      return 'done';
    });
  const done = await Promise.all([lockInOrder(one, ids), lockInOrder(two, [ids[1], ids[0]])]);
  assert.deepEqual(done, ['done', 'done']);
  assert.ok(attempts > 2, 'no transaction was given up');
});

test('a transaction that is given up each time fails in the end, and other failures at once', async (t) => {
  const [db] = await openTwice(t);
  let attempts = 0;
  const raise = (code: string) =>
    inTransaction(db, async (transaction) => {
      attempts += 1;
      await sql`do ${sql.raw(`$$ begin raise exception 'no' using errcode = '${code}'; end $$`)}`.execute(
        transaction,
      );
    });
  await assert.rejects(raise('40001'), isTransient);
  assert.equal(attempts, 5);
  attempts = 0;
  await assert.rejects(raise('23514'), (error) => !isTransient(error));
  assert.equal(attempts, 1);
});

test('a table that a newer server changes is read on, in a transaction and outside', async (t) => {
  const [old, newer] = await openTwice(t);
  const id = await ensureOrganization(old, 'acme');
  const read = async (db: Database) => (await findOrganization(db, 'acme'))?.id;
  // Often enough that each connection has it prepared.
  for (let round = 0; round < 3; round += 1) assert.equal(await read(old), id);
  await sql`alter table organizations add column later text`.execute(newer);
  assert.equal(await read(old), id);
  for (let round = 0; round < 3; round += 1) assert.equal(await inTransaction(old, read), id);
  await sql`alter table organizations add column latest text`.execute(newer);
  assert.equal(await inTransaction(old, read), id);
});

test('a key that another server revokes is refused at the next request, however many there are', async (t) => {
  const [one, two] = await openTwice(t);
  const organizationId = await ensureOrganization(one, 'acme');
  const issued = await Promise.all(
    Array.from({ length: 30 }, (_, index) =>
      createApiKey(one, organizationId, { name: `k${index}`, createdBy: null, expiresAt: null }),
    ),
  );
  const findAll = () => Promise.all(issued.map(({ secret }) => findApiKey(one, secret)));
  const names = (await findAll()).map((key) => key?.name);
  assert.deepEqual(
    names,
    issued.map((_, index) => `k${index}`),
  );
  // Runs concurrently with the others: lookups that begin after the change must see it.
  const before = findAll();
  await two.updateTable('api_keys').set({ revoked_at: new Date().toISOString() }).execute();
  assert.ok((await findAll()).every((key) => key === undefined));
  await before;
});
