import assert from 'node:assert/strict';
import { chmod, readFile, stat, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { makeFolder } from '../testing/test-server.ts';
import { Sealer } from './sealer.ts';
import { ensureSecretsKeys, followSecretsKeys, readSecretsKeys, renewSecretsKeys } from './secrets-key.ts';

test('the key file is created once by concurrent servers, readable only for its owner', async (t) => {
  const path = join(await makeFolder(t), 'secrets.key');
  const made = await Promise.all(Array.from({ length: 8 }, () => ensureSecretsKeys(path)));
  for (const keys of made) assert.deepEqual(keys, made[0]);
  assert.deepEqual([made[0]?.length, made[0]?.[0].length], [1, 32]);
  assert.equal((await stat(path)).mode & 0o777, 0o600);
});

test('a key file that others may read is refused with the remedy', async (t) => {
  const path = join(await makeFolder(t), 'secrets.key');
  await ensureSecretsKeys(path);
  for (const mode of [0o640, 0o604, 0o660]) {
    await chmod(path, mode);
    assert.throws(() => readSecretsKeys(path), new RegExp(`chmod 600 ${path}`));
  }
});

test('a damaged key file is refused without saying what is in it, and is not replaced', async (t) => {
  const path = join(await makeFolder(t), 'secrets.key');
  for (const content of [
    '',
    '# nothing\n',
    'c2hvcnQ=\n',
    `${Buffer.alloc(32).toString('base64')}\nrubbish\n`,
  ]) {
    await writeFile(path, content, { mode: 0o600 });
    await assert.rejects(ensureSecretsKeys(path), (error: Error) => {
      assert.match(error.message, /must hold keys/);
      return !error.message.includes('rubbish') && !error.message.includes('c2hvcnQ');
    });
    assert.equal(await readFile(path, 'utf8'), content);
  }
});

test('a key file that cannot be made is named with the remedy', async (t) => {
  const path = join(await makeFolder(t), 'missing', 'secrets.key');
  await assert.rejects(ensureSecretsKeys(path), new RegExp(`${path} cannot be made; make its folder`));
});

test('a rotation puts a new key first and keeps the one before, and no older one', async (t) => {
  const path = join(await makeFolder(t), 'secrets.key');
  const [first] = await ensureSecretsKeys(path);
  await renewSecretsKeys(path);
  const [second, ...kept] = readSecretsKeys(path);
  assert.deepEqual(kept, [first]);
  await renewSecretsKeys(path);
  assert.deepEqual(readSecretsKeys(path).slice(1), [second]);
  assert.equal((await stat(path)).mode & 0o777, 0o600);
});

test('a sealer in use follows a rotation: it seals with the new key and still opens older values', async (t) => {
  const path = join(await makeFolder(t), 'secrets.key');
  await ensureSecretsKeys(path);
  const sealer = new Sealer(followSecretsKeys(path));
  const old = sealer.seal('hunter2', 'registry:1');
  assert.equal(sealer.isStale(old), false);
  await renewSecretsKeys(path);
  assert.equal(sealer.isStale(old), true);
  assert.equal(sealer.open(old, 'registry:1'), 'hunter2');
  assert.equal(sealer.isStale(sealer.seal('x', 'registry:1')), false);
  await renewSecretsKeys(path);
  assert.equal(sealer.canOpen(old), false);
  assert.throws(() => sealer.open(old, 'registry:1'), /not in the key file/);
});

test('a file that did not change is not read again', async (t) => {
  const path = join(await makeFolder(t), 'secrets.key');
  await ensureSecretsKeys(path);
  const { atime, mtime } = await stat(path);
  const read = followSecretsKeys(path);
  const keys = read();
  assert.equal(read(), keys);
  await utimes(path, atime, new Date(mtime.getTime() + 1000));
  assert.notEqual(read(), keys);
});
