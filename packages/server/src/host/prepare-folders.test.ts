import assert from 'node:assert/strict';
import {
  linkSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  rmSync,
  symlinkSync,
  writeFileSync,
  chmodSync,
  chownSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { prepareFolders } from './prepare-folders.ts';

const EARLIER = { uid: 64_001, gid: 64_001 };
const NOW = { uid: 64_002, gid: 64_002 };

function folders(t: TestContext) {
  const dataFolder = mkdtempSync(join(tmpdir(), 'svc-folders-'));
  t.after(() => rmSync(dataFolder, { recursive: true, force: true }));
  return { dataFolder, serverFolder: join(dataFolder, 'server') };
}

test('files that root created before the first start are given to the service user', async (t) => {
  const where = folders(t);
  mkdirSync(where.serverFolder);
  writeFileSync(join(where.serverFolder, 'signing.key'), '');
  await prepareFolders(where, NOW);
  assert.equal(lstatSync(where.serverFolder).uid, NOW.uid);
  assert.equal(lstatSync(join(where.serverFolder, 'signing.key')).uid, NOW.uid);
});

test('another service user than the last time gets the files of the one before', async (t) => {
  const where = folders(t);
  await prepareFolders(where, EARLIER);
  writeFileSync(join(where.serverFolder, 'store.db'), '');
  chownSync(join(where.serverFolder, 'store.db'), EARLIER.uid, EARLIER.gid);
  await prepareFolders(where, NOW);
  assert.equal(lstatSync(join(where.serverFolder, 'store.db')).uid, NOW.uid);
});

test('a folder that its user made world-writable is closed before its files change owner', async (t) => {
  const where = folders(t);
  await prepareFolders(where, EARLIER);
  chmodSync(where.serverFolder, 0o777);
  await prepareFolders(where, NOW);
  assert.equal(lstatSync(where.serverFolder).mode & 0o777, 0o700);
});

test("a link in place of the server's folder changes no owner of its target", async (t) => {
  const where = folders(t);
  const target = join(where.dataFolder, 'of-root');
  mkdirSync(target);
  symlinkSync(target, where.serverFolder);
  await assert.rejects(prepareFolders(where, NOW), /must be a folder, not a link/);
  assert.equal(lstatSync(target).uid, 0);
});

test('links that an earlier service user planted change no owner of files of root', async (t) => {
  const where = folders(t);
  const secret = join(where.dataFolder, 'secret');
  writeFileSync(secret, '');
  await prepareFolders(where, EARLIER);
  symlinkSync(secret, join(where.serverFolder, 'symbolic'));
  linkSync(secret, join(where.serverFolder, 'hard'));
  await prepareFolders(where, NOW);
  assert.equal(lstatSync(secret).uid, 0);
});
