import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { SELF_HOSTED_PLAN } from '@svc/contract/rest';
import { EXIT } from '../host/exit-codes.ts';
import { StartError } from '../host/start-error.ts';
import { openStore } from '../store/open-store.ts';
import { listPlans } from '../store/plans.ts';
import { sqliteDialect } from '../store/sqlite.ts';
import { makeFolder } from '../testing/test-server.ts';
import { loadPlans } from './load-plans.ts';

async function prepare(t: TestContext) {
  const folder = await makeFolder(t);
  const database = await openStore(sqliteDialect(join(folder, 'store.db')));
  t.after(() => database.destroy());
  const path = join(folder, 'plans.json');
  const load = async (text: string) => {
    await writeFile(path, text);
    await loadPlans(database, path);
  };
  return { database, path, load };
}

test('plans are read from a file; what is left out is unlimited and costs nothing', async (t) => {
  const { database, load } = await prepare(t);
  await load(JSON.stringify({ plans: [{ name: 'pro', max_sandboxes: 3, usage_vcpu_hour_usd: 0.05 }] }));
  const [pro, builtIn] = await listPlans(database);
  assert.deepEqual(pro, {
    ...SELF_HOSTED_PLAN,
    name: 'pro',
    display_name: 'pro',
    description: null,
    is_default: false,
    max_sandboxes: 3,
    usage_vcpu_hour_usd: 0.05,
  });
  assert.deepEqual(builtIn, SELF_HOSTED_PLAN);
  await load(JSON.stringify({ plans: [{ name: 'free', is_default: true }] }));
  assert.deepEqual(
    (await listPlans(database)).map(({ name }) => name),
    ['free'],
  );
});

test('everything that is wrong with the file is named, and the plans stay as they were', async (t) => {
  const { database, load, path } = await prepare(t);
  await load(JSON.stringify({ plans: [{ name: 'pro' }] }));
  const bad: readonly [string, readonly RegExp[]][] = [
    ['{', [/is not JSON/]],
    ['[]', [/the file/]],
    ['{"plans":[]}', [/plans/]],
    ['{"plans":[3]}', [/plans\[0\] must be an object/]],
    [
      '{"plans":[{"name":"A b","max_sandboxes":-1},{"name":"x","price":3,"self_serve":"yes"}],"more":1}',
      [
        /\[0\]\.name must/,
        /\[0\]\.max_sandboxes/,
        /\[1\]\.price is not a/,
        /\[1\]\.self_serve/,
        /more is not a/,
      ],
    ],
    ['{"plans":[{"max_sandboxes":1}]}', [/plans\[0\]\.name is required/]],
    ['{"plans":[{"name":"a"},{"name":"a"}]}', [/plan a is there more than once/]],
    ['{"plans":[{"name":"a","is_default":true},{"name":"b","is_default":true}]}', [/only one plan.*a, b/]],
  ];
  for (const [text, patterns] of bad) {
    await assert.rejects(load(text), (error) => {
      assert.ok(error instanceof StartError);
      assert.equal(error.exitCode, EXIT.usage);
      for (const pattern of patterns) assert.match(error.message, pattern);
      return true;
    });
  }
  await assert.rejects(loadPlans(database, `${path}.missing`), /ENOENT/);
  assert.equal((await listPlans(database))[0]?.name, 'pro');
});
