import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chown, mkdir, readdir, readFile, stat, symlink, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { test } from 'node:test';
import { HostCallError } from './host-calls.ts';
import { makeTestHost } from '../testing/test-host.ts';
import { PLAIN_OWNER } from '../testing/test-served-folder.ts';
import type { TestHost } from '../testing/test-host.ts';

const ID_BASE = 1_200_000_000;

/** `root` is under the guest's control; `outside` must be out of its reach. */
async function makeFolders(host: TestHost) {
  const at = (name: string) => join(host.folder, name);
  await mkdir(at('root/inner'), { recursive: true });
  await mkdir(at('outside'));
  await writeFile(at('outside/secret'), 'secret');
  await writeFile(at('root/inner/file'), 'harmless');
  return { root: at('root'), outside: at('outside'), target: at('target') };
}

test('a folder is bound as a folder, a file as a file, read-only when asked, at a target made for it', async () => {
  await using host = await makeTestHost();
  const { root, target } = await makeFolders(host);
  const plain = { root, readonly: false, idmap: null };
  assert.deepEqual(await host.calls.bind({ ...plain, path: 'inner', target }), { kind: 'directory' });
  assert.deepEqual(await readdir(target), ['file']);
  await writeFile(join(target, 'new'), 'through the bind');
  assert.equal(await readFile(join(root, 'inner/new'), 'utf8'), 'through the bind');
  await host.calls.unmount(target);

  const file = `${target}-file`;
  const readonly = { root, path: '/inner/file', target: file, readonly: true, idmap: null };
  assert.deepEqual(await host.calls.bind(readonly), { kind: 'file' });
  assert.equal(await readFile(file, 'utf8'), 'harmless');
  await assert.rejects(writeFile(file, 'changed'), { code: 'EROFS' });
  const table = await readFile('/proc/self/mountinfo', 'utf8');
  assert.match(table.split('\n').find((line) => line.includes(` ${file} `)) ?? '', / ro,nosuid,nodev/);
});

test('symlinks in the root never lead outside: absolute, with dots, through /proc', async () => {
  await using host = await makeTestHost();
  const { root, outside, target } = await makeFolders(host);
  const links = {
    absolute: outside,
    dots: '../outside',
    manyDots: '../../../../../../../../../..' + outside,
    magic: '/proc/self/root' + outside,
    ofRoot: '/',
  };
  for (const [name, to] of Object.entries(links)) await symlink(to, join(root, name));
  for (const path of [...Object.keys(links), '../outside', '/../outside', 'inner/../../outside', outside]) {
    const outcome = await host.calls.bind({ root, path, target, readonly: true, idmap: null }).then(
      () => 'bound',
      (error: unknown) => (error instanceof HostCallError ? error.errno : String(error)),
    );
    if (path === 'ofRoot') {
      assert.equal(outcome, 'bound', 'a symlink to / is the root itself');
      assert.ok((await readdir(target)).includes('inner'));
    } else {
      assert.equal(outcome, 'ENOENT', path);
    }
    await host.calls.unmount(target);
  }
});

test('a guest that swaps a folder for a symlink as fast as it can never gets the outside bound', async () => {
  await using host = await makeTestHost();
  const { root, outside, target } = await makeFolders(host);
  await symlink(outside, join(root, 'link'));
  const swap = `
    const { renameSync } = require('node:fs');
    process.stdout.write('swapping');
    for (;;) { renameSync('inner', 'spare'); renameSync('link', 'inner'); renameSync('inner', 'link'); renameSync('spare', 'inner'); }`;
  const guest = spawn(process.execPath, ['-e', swap], { cwd: root, stdio: ['ignore', 'pipe', 'inherit'] });
  const exited = once(guest, 'exit');
  try {
    await once(guest.stdout, 'data');
    const outcomes = { bound: 0, refused: 0 };
    const deadline = performance.now() + 60_000;
    const isOver = () => outcomes.bound >= 50 && outcomes.refused >= 50;
    while (!isOver() && performance.now() < deadline) {
      try {
        await host.calls.bind({ root, path: 'inner', target, readonly: true, idmap: null });
        outcomes.bound++;
        assert.deepEqual(await readdir(target), ['file']);
        await host.calls.unmount(target);
      } catch (error) {
        if (!(error instanceof HostCallError)) throw error;
        outcomes.refused++;
      }
    }
    assert.ok(outcomes.bound > 0 && outcomes.refused > 0, `no race took place: ${JSON.stringify(outcomes)}`);
  } finally {
    guest.kill('SIGKILL');
    await exited;
  }
});

test('with an id mapping the guest owns what guest ids own on disk; with an owner, what the host owner owns', async () => {
  await using host = await makeTestHost();
  const { root, target } = await makeFolders(host);
  const [userPath, networkPath] = [join(host.folder, 'user'), join(host.folder, 'net')];
  await host.calls.createNamespaces({ userPath, networkPath, idBase: ID_BASE, link: null });
  const asGuest = (uid: number, script: string) =>
    host.run(
      'nsenter',
      `--user=${userPath}`,
      '-S',
      String(uid),
      '-G',
      String(uid),
      'sh',
      '-c',
      script,
      'sh',
      target,
    );

  await chown(join(root, 'inner'), 1000, 1000);
  const mapped = { root, path: 'inner', target, readonly: false };
  await host.calls.bind({ ...mapped, idmap: { userPath, idBase: ID_BASE, owner: null } });
  assert.equal(await asGuest(0, 'stat -c "%u %g" "$1" "$1/file"'), '1000 1000\n0 0\n');
  await asGuest(0, 'touch "$1/by-root"');
  assert.equal((await stat(join(root, 'inner/by-root'))).uid, 0);
  await host.calls.unmount(target);

  await chown(join(root, 'inner'), 4242, 4243);
  await chown(join(root, 'inner/file'), 4242, 4243);
  const owner = { ...PLAIN_OWNER, uid: 7, gid: 8 };
  await host.calls.bind({ ...mapped, idmap: { userPath, idBase: ID_BASE, owner } });
  assert.equal(await asGuest(0, 'stat -c "%u %g" "$1" "$1/file"'), '7 8\n7 8\n');
  const asOwner = ['-S', '7', '-G', '8', 'touch', join(target, 'by-owner')];
  await host.run('nsenter', `--user=${userPath}`, ...asOwner);
  const made = await stat(join(root, 'inner/by-owner'));
  assert.deepEqual([made.uid, made.gid], [4242, 4243]);
  await host.calls.unmount(target);
  await host.calls.removeNamespaces(userPath, networkPath);
});

test('a folder whose file system cannot map ids is served instead, with the same owners, also read-only', async () => {
  await using host = await makeTestHost();
  const at = (name: string) => join(host.folder, name);
  for (const name of ['lower', 'upper', 'work', 'root']) await mkdir(at(name));
  // Of today's file systems only this one has handles and cannot map ids; before Linux 6.3 a tmpfs is like that.
  const layers = `lowerdir=${at('lower')},upperdir=${at('upper')},workdir=${at('work')},index=on,nfs_export=on`;
  await host.run('mount', '-t', 'overlay', '-o', layers, 'overlay', at('root'));
  await mkdir(at('root/inner'));
  await chown(at('root/inner'), 4242, 4243);
  const [userPath, networkPath] = [at('user'), at('net')];
  await host.calls.createNamespaces({ userPath, networkPath, idBase: ID_BASE, link: null });
  const owner = { ...PLAIN_OWNER, uid: 7, gid: 8 };
  const idmap = { userPath, idBase: ID_BASE, owner };
  const asOwner = (...command: string[]) =>
    host.run('nsenter', `--user=${userPath}`, '-S', '7', '-G', '8', ...command);

  const [writable, readonly] = [at('writable'), at('readonly')];
  await host.calls.bind({ root: at('root'), path: 'inner', target: writable, readonly: false, idmap });
  await asOwner('touch', join(writable, 'by-owner'));
  const { uid, gid } = await stat(at('root/inner/by-owner'));
  assert.deepEqual([uid, gid], [4242, 4243]);

  await host.calls.bind({ root: at('root'), path: 'inner', target: readonly, readonly: true, idmap });
  assert.equal(await asOwner('stat', '-c', '%u %g', join(readonly, 'by-owner')), '7 8\n');
  await assert.rejects(asOwner('touch', join(readonly, 'another')), /Read-only file system/);
});

test('sockets and missing paths are refused, a bind that fails leaves no mount', async () => {
  await using host = await makeTestHost();
  const { root, target } = await makeFolders(host);
  const server = createServer().listen(join(root, 'socket'));
  await once(server, 'listening');
  const bind = (path: string) => host.calls.bind({ root, path, target, readonly: false, idmap: null });
  await assert.rejects(bind('socket'), { errno: 'EINVAL' });
  await assert.rejects(bind('missing'), { errno: 'ENOENT' });
  server.close();
  await once(server, 'close');
  assert.deepEqual(await host.mounts(), []);
});
