import assert from 'node:assert/strict';
import { test } from 'node:test';
import { makeFolder } from '../testing/test-server.ts';
import { lockDataFolder } from './data-folder-lock.ts';
import { findIdentity } from './drop-privileges.ts';
import { findServer, forgetPid, writePid } from './pid-file.ts';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';

test('a data folder has one holder at a time, also through different paths', async (t) => {
  const folder = await makeFolder(t);
  const lock = await lockDataFolder(folder, 'server');
  assert.equal(await lockDataFolder(`${folder}/.`, 'server'), undefined);
  const other = await lockDataFolder(folder, 'web');
  assert.notEqual(other, undefined);
  await other?.release();
  await lock?.release();
  const again = await lockDataFolder(folder, 'server');
  assert.notEqual(again, undefined);
  await again?.release();
});

test('a server is found while its process lives, and a pid that is used again is not taken for it', async (t) => {
  const folder = await makeFolder(t);
  assert.equal(await findServer(folder), undefined);
  await writePid(folder);
  assert.equal(await findServer(folder), process.pid);
  await writeFile(join(folder, 'server.pid'), `${process.pid} 1\n`);
  assert.equal(await findServer(folder), undefined);
  for (const text of ['', 'x', '-1 1', '1', '999999999 5']) {
    await writeFile(join(folder, 'server.pid'), text);
    assert.equal(await findServer(folder), undefined, text);
  }
  await forgetPid(folder);
  await forgetPid(folder);
});

test('the service user is a number pair, or a user of this host; never root', () => {
  assert.deepEqual(findIdentity('12:34'), { uid: 12, gid: 34 });
  assert.ok(findIdentity('daemon').uid > 0);
  for (const bad of ['0:0', '0:5', '5:0', 'root', 'no-such-user', '-1', 'a b', '--help', '']) {
    assert.throws(() => findIdentity(bad), /--run-as/, bad);
  }
});
