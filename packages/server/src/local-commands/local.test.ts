import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { chmod } from 'node:fs/promises';
import { join } from 'node:path';
import { after, describe, test, type TestContext } from 'node:test';
import { promisify } from 'node:util';
import { PlatformError } from '@svc/contract';
import { pino } from 'pino';
import { readConfig } from '../config.ts';
import { prepareFolders } from '../host/prepare-folders.ts';
import { hashEvent } from '../store/events.ts';
import { findApiKey, findToken } from '../store/api-keys-and-tokens.ts';
import { ensureOrganization, findMembership } from '../store/organizations.ts';
import { TestPostgres } from '../testing/test-postgres.ts';
import { makeFolder } from '../testing/test-server.ts';
import { startWeb } from '../web.ts';
import { createKey } from './create-key.ts';
import { withStore, type StorePlace } from './local-store.ts';
import { saveServerFiles } from './save-server-files.ts';
import {
  createLocalApiKey,
  createLocalOrganization,
  createLocalToken,
  listLocalApiKeys,
  listLocalOrganizations,
  listLocalTokens,
  revokeLocalApiKey,
  revokeLocalToken,
  setLocalQuotas,
} from './local.ts';

const run = promisify(execFile);
const OWNER = 'ann@example.com';
const OTHER_UID = 64_556;

const postgres = await TestPostgres.start();
after(() => postgres[Symbol.asyncDispose]());

const places: Readonly<Record<string, (t: TestContext) => Promise<StorePlace>>> = {
  SQLite: async (t) => ({ dataFolder: await makeFolder(t) }),
  PostgreSQL: async () => ({ dataFolder: '/nowhere', databaseUrl: await postgres.createDatabase() }),
};

for (const [name, makePlace] of Object.entries(places)) {
  describe(`the store of a server on this machine, ${name}`, () => {
    test('an organization, its owner, a key and a token are made from nothing, and work', async (t) => {
      const place = await makePlace(t);
      const made = await createLocalOrganization(place, { slug: 'acme', name: 'Acme Inc', owner: OWNER });
      const key = await createLocalApiKey(place, 'acme', { name: 'ci', expire: '1d' });
      const token = await createLocalToken(place, OWNER, { name: 'laptop' });
      await withStore(place, async (database) => {
        assert.equal((await findApiKey(database, key.secret))?.organization.id, made.id);
        assert.equal((await findToken(database, token.secret))?.user.email, OWNER);
        assert.equal((await findMembership(database, 'acme', token.user.id))?.role, 'owner');
      });
      assert.equal((await listLocalApiKeys(place, 'acme'))[0]?.id, key.id);
      assert.equal((await listLocalTokens(place, OWNER))[0]?.id, token.id);
      await revokeLocalApiKey(place, 'acme', key.id);
      await revokeLocalToken(place, OWNER, token.id);
      assert.deepEqual(await listLocalApiKeys(place, 'acme'), []);
      await withStore(place, async (database) => {
        assert.equal(await findApiKey(database, key.secret), undefined);
        assert.equal(await findToken(database, token.secret), undefined);
      });
    });

    test('each change is an event of the command line, in an unbroken chain without secrets', async (t) => {
      const place = await makePlace(t);
      await createLocalOrganization(place, { slug: 'acme', owner: OWNER });
      const key = await createLocalApiKey(place, 'acme', { name: 'ci' });
      const token = await createLocalToken(place, OWNER, { name: 'laptop' });
      await setLocalQuotas(place, 'acme', { max_sandboxes: 3 });
      await revokeLocalToken(place, OWNER, token.id);
      await revokeLocalApiKey(place, 'acme', key.id);
      await withStore(place, async (database) => {
        const events = await database.selectFrom('events').selectAll().orderBy('sequence').execute();
        assert.deepEqual(
          events.map(({ event_type: type }) => type),
          [
            'org_created',
            'api_key_created',
            'token_created',
            'quota_changed',
            'token_revoked',
            'api_key_revoked',
          ],
        );
        let previous = '';
        for (const { hash, ...event } of events) {
          assert.equal((JSON.parse(event.actor) as { code: string }).code, 'cli');
          assert.equal(event.previous_hash, previous);
          assert.equal(hashEvent(event), hash);
          previous = hash;
        }
        for (const { secret } of [key, token]) assert.ok(!JSON.stringify(events).includes(secret));
      });
    });

    test('a namespace without an owner can be taken over once, and keeps its contents', async (t) => {
      const place = await makePlace(t);
      const id = await withStore(place, (database) => ensureOrganization(database, 'default'));
      assert.equal((await createLocalOrganization(place, { slug: 'default', owner: OWNER })).id, id);
      await assert.rejects(createLocalOrganization(place, { slug: 'default', owner: OWNER }), (error) =>
        PlatformError.is(error, 'name_already_exists'),
      );
      const [only, ...more] = await listLocalOrganizations(place);
      assert.deepEqual([only?.slug, only?.members, only?.sandboxes, more.length], ['default', 1, 0, 0]);
    });

    test('without an organization a key is for default; of a missing one there is none', async (t) => {
      const place = await makePlace(t);
      assert.equal((await createLocalApiKey(place, undefined, { name: 'x' })).organization, 'default');
      const missing = (error: unknown) => PlatformError.is(error, 'org_not_found');
      await assert.rejects(createLocalApiKey(place, 'nowhere', { name: 'x' }), missing);
      await assert.rejects(setLocalQuotas(place, 'nowhere', {}), missing);
      await assert.rejects(revokeLocalApiKey(place, 'default', 'x'), (error) =>
        PlatformError.is(error, 'not_found'),
      );
      await assert.rejects(listLocalTokens(place, OWNER), (error) => PlatformError.is(error, 'not_found'));
      const bad = (error: unknown) => PlatformError.is(error, 'invalid_request');
      await assert.rejects(createLocalApiKey(place, 'default', { name: '' }), bad);
      await assert.rejects(createLocalApiKey(place, 'default', { name: 'x', expire: 'soon' }), bad);
      await assert.rejects(createLocalToken(place, 'no-address', { name: 'x' }), bad);
      await assert.rejects(createLocalOrganization(place, { slug: 'Bad_' }), bad);
      await assert.rejects(setLocalQuotas(place, 'default', { colour: 1 }), bad);
    });
  });
}

test('commands do not use the built-in store of a server that has its rows in PostgreSQL', async (t) => {
  const dataFolder = await makeFolder(t);
  const databaseUrl = await postgres.createDatabase();
  const serve = async (words: readonly string[]) => {
    const config = readConfig(
      ['--path', dataFolder, '--port', '0', '--engine-socket', '/nowhere', ...words],
      {},
    );
    await prepareFolders(config, null);
    await (await startWeb(config, pino({ level: 'silent' }))).close();
  };
  await serve(['--database', databaseUrl]);
  await serve(['--database', databaseUrl]);
  const elsewhere = (error: unknown) =>
    PlatformError.is(error, 'invalid_request') &&
    /no database was named\n {2}try: set SVC_D/.test(error.message);
  await assert.rejects(createLocalOrganization({ dataFolder }, { slug: 'acme' }), elsewhere);
  await assert.rejects(createKey(dataFolder, {}), elsewhere);
  await assert.rejects(
    saveServerFiles({ dataFolder }, {}, async () => {}),
    elsewhere,
  );
  await createLocalOrganization({ dataFolder, databaseUrl }, { slug: 'acme' });
  await serve([]);
  await createLocalOrganization({ dataFolder }, { slug: 'acme' });
});

test("a backup gets the store and small keys of the server's folder, and nothing that was put in their place", async (t) => {
  const dataFolder = await makeFolder(t);
  await createLocalOrganization({ dataFolder }, { slug: 'acme' });
  await createKey(dataFolder, {});
  const plant = (script: string) => run('sh', ['-ec', script], { cwd: join(dataFolder, 'server') });
  let bytes = 0;
  const save = () =>
    saveServerFiles({ dataFolder }, {}, async (piece) => {
      bytes += piece.length;
      assert.ok(bytes < 64 * 1024 ** 2, 'without end');
    });
  await save();
  await plant('mv signing.key kept; mv store.db kept.db; echo secret > ../other');
  for (const script of [
    'cp kept.db store.db; ln -s ../other signing.key',
    'cp kept.db store.db; mkfifo signing.key',
    'cp kept.db store.db; mkdir signing.key',
    'cp kept.db store.db; truncate -s 1T signing.key',
    'cp kept signing.key; ln -s ../server/kept.db store.db',
    'cp kept signing.key; mkfifo store.db',
  ]) {
    bytes = 0;
    await plant(`rm -rf signing.key store.db*; ${script}`);
    await assert.rejects(save(), /ELOOP|is no file|is too large for a key/, script);
  }
});

test('the refusal of a user who may not use the store names the one who may', async (t) => {
  const dataFolder = await makeFolder(t);
  await chmod(dataFolder, 0o711);
  await createLocalApiKey({ dataFolder }, undefined, { name: 'x' });
  const program = `
    const { listLocalOrganizations } = await import(${JSON.stringify(join(import.meta.dirname, 'local.ts'))});
    await listLocalOrganizations({ dataFolder: ${JSON.stringify(dataFolder)} }).catch((error) => console.log(error.message));`;
  const { stdout } = await run(process.execPath, ['--input-type=module', '--eval', program], {
    uid: OTHER_UID,
    gid: OTHER_UID,
  });
  assert.match(stdout, /belongs to another user; run this command as that user or as root/);
});
