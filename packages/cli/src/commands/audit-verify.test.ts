import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { test, type TestContext } from 'node:test';

const MAIN = join(import.meta.dirname, '..', 'main.ts');

async function prepare(t: TestContext) {
  const folder = await mkdtemp(join(tmpdir(), 'svc-audit-'));
  t.after(() => rm(folder, { recursive: true, force: true }));
  const svc = (...words: readonly string[]) => {
    const { status, stdout, stderr } = spawnSync(process.execPath, [MAIN, '--path', folder, ...words], {
      encoding: 'utf8',
      timeout: 100_000,
    });
    return { status, stdout, stderr };
  };
  const tamper = (sql: string) => {
    const database = new DatabaseSync(join(folder, 'server', 'store.db'));
    database.exec(sql);
    database.close();
  };
  return { svc, tamper };
}

test('svc audit verify says that nothing was changed, and what was', async (t) => {
  const { svc, tamper } = await prepare(t);
  assert.equal(svc('org', 'create', 'acme').status, 0);
  assert.equal(svc('org', 'quota', 'acme', 'max_sandboxes=3').status, 0);
  assert.equal(svc('org', 'create', 'other').status, 0);

  const whole = svc('audit', 'verify', '-o', 'json');
  assert.equal(whole.status, 0, whole.stderr);
  assert.deepEqual(
    JSON.parse(whole.stdout).map(({ slug, intact, broken }: Record<string, unknown>) => [
      slug,
      intact,
      broken,
    ]),
    [
      ['acme', 2, null],
      ['other', 1, null],
    ],
  );

  tamper(`update events set payload = '{"max_sandboxes":300}' where event_type = 'quota_changed'`);
  const broken = svc('audit', 'verify');
  assert.equal(broken.status, 1);
  assert.match(broken.stdout, /acme +1 +changed at 2/);
  assert.match(broken.stderr, /acme: event 2 .* was changed/);
  assert.equal(svc('audit', 'verify', '--org', 'other').status, 0);
  const unknown = svc('audit', 'verify', '--org', 'missing');
  assert.equal(unknown.status, 1);
  assert.match(unknown.stderr, /no organization 'missing'/);
});
