import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { makeFolder } from '../testing/test-server.ts';
import { rememberUntilChange } from './change-stamp.ts';
import { createApiKey, findApiKey } from './api-keys-and-tokens.ts';
import { openStore } from './open-store.ts';
import { ensureOrganization } from './organizations.ts';
import { sqliteDialect } from './sqlite.ts';

async function openTwice(t: TestContext) {
  const path = join(await makeFolder(t), 'store.db');
  const [one, two] = [await openStore(sqliteDialect(path)), await openStore(sqliteDialect(path))];
  t.after(() => Promise.all([one.destroy(), two.destroy()]));
  return { one, two };
}

test('a result is cached until any connection changes the database', async (t) => {
  const { one, two } = await openTwice(t);
  let loads = 0;
  const remembered = rememberUntilChange(async (_db, key) => {
    loads += 1;
    return await Promise.resolve(`${key}-${loads}`);
  });
  assert.deepEqual([await remembered(one, 'a'), await remembered(one, 'a')], ['a-1', 'a-1']);
  await ensureOrganization(one, 'own');
  assert.equal(await remembered(one, 'a'), 'a-2');
  await ensureOrganization(two, 'other');
  assert.deepEqual([await remembered(one, 'a'), await remembered(one, 'a')], ['a-3', 'a-3']);
});

test('a key that another process revokes is refused at the next request', async (t) => {
  const { one, two } = await openTwice(t);
  const organizationId = await ensureOrganization(one, 'acme');
  const { secret } = await createApiKey(one, organizationId, { name: 'k', createdBy: null, expiresAt: null });
  assert.equal((await findApiKey(one, secret))?.name, 'k');
  assert.equal((await findApiKey(one, secret))?.name, 'k');
  await two.updateTable('api_keys').set({ revoked_at: new Date().toISOString() }).execute();
  assert.equal(await findApiKey(one, secret), undefined);
});

test('a key that is remembered expires in time', async (t) => {
  const { one } = await openTwice(t);
  const organizationId = await ensureOrganization(one, 'acme');
  const expiresAt = new Date(Date.now() + 60_000).toISOString();
  const { secret } = await createApiKey(one, organizationId, { name: 'k', createdBy: null, expiresAt });
  assert.equal((await findApiKey(one, secret))?.name, 'k');
  t.mock.timers.enable({ apis: ['Date'], now: Date.now() + 61_000 });
  assert.equal(await findApiKey(one, secret), undefined);
});
