import assert from 'node:assert/strict';
import { mkdtemp, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { keyPath, readContexts, requireContext, writeContexts } from './context-file.ts';

async function makeFolder(t: TestContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'svc-contexts-'));
  t.after(() => rm(folder, { recursive: true }));
  return folder;
}

test('contexts are read as they were written, by their owner alone', async (t) => {
  const folder = join(await makeFolder(t), 'made');
  assert.deepEqual(await readContexts(folder), { active: null, contexts: {} });
  const file = { active: 'lab', contexts: { lab: { url: 'http://a', apiKeyRef: 'env:KEY' } } };
  await writeContexts(folder, file);
  assert.deepEqual(await readContexts(folder), file);
  assert.equal((await stat(join(folder, 'config.json'))).mode & 0o777, 0o600);
});

test('a context that does not exist is refused, also one that every object has', async (t) => {
  const file = await readContexts(await makeFolder(t));
  for (const name of ['lab', 'constructor', '__proto__'])
    assert.throws(() => requireContext(file, name), /svc context ls/);
});

test('a file that is no JSON is reported with its path', async (t) => {
  const folder = await makeFolder(t);
  await writeFile(join(folder, 'config.json'), '{');
  await assert.rejects(readContexts(folder), /config\.json is no JSON/);
});

test('no name leads to a key outside the folder', () => {
  for (const name of ['..', '../x', 'a/b', '', '.hidden', '-x'])
    assert.throws(() => keyPath('/c', name), /named by/);
  assert.equal(keyPath('/c', 'lab.1'), '/c/keys/lab.1');
});
