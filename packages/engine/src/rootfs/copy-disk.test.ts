import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, readdir, readFile, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { PlatformError } from '@svc/contract/errors';
import { makeRealHost, type RealHost } from '../testing/rootfs-host.ts';
import { makeLayer } from './rootfs.suite.ts';

const MIB = 2 ** 20;
const soon = () => AbortSignal.timeout(100_000);

/** Makes a disk to which a guest has written `content`. */
async function writtenDisk(host: RealHost, handle: string, content: string | Uint8Array): Promise<string> {
  const [slot] = host.slots;
  const rootfs = host.open();
  await rootfs.recover([]);
  const layer = makeLayer(join(host.scratch, 'layer'), {});
  await rootfs.createDisk(handle, 64, soon());
  await rootfs.mount(handle, [layer], slot, soon());
  await host.write(handle, slot, 'content', content);
  await rootfs.unmount(handle);
  return layer;
}

test('holes stay holes in a saved and in a restored disk', async () => {
  await using host = await makeRealHost();
  await writtenDisk(host, 'sparsedisk', Buffer.alloc(3 * MIB, 7));
  const file = join(host.scratch, 'saved');
  await host.open().saveDisk('sparsedisk', file, soon());
  await host.open().restoreDisk('otherdisk', file, 128, soon());
  for (const path of [file, join(host.folder, 'disks/otherdisk.img')]) {
    const { size, blocks } = await stat(path);
    assert.ok(size >= 64 * MIB, `${path} is ${size} bytes long`);
    assert.ok(blocks * 512 < 8 * MIB, `${path} takes ${blocks * 512} bytes`);
  }
});

test('a disk is saved when its last run has let go of it, and not before', async () => {
  await using host = await makeRealHost();
  const [slot] = host.slots;
  const layer = await writtenDisk(host, 'busydisk', 'early');
  const rootfs = host.open();
  const root = await rootfs.mount('busydisk', [layer], slot, soon());
  const holder = spawn('sleep', ['60'], { cwd: root, stdio: 'ignore' });
  await once(holder, 'spawn');
  await host.write('busydisk', slot, 'content', 'late');
  await rootfs.unmount('busydisk');
  const file = join(host.scratch, 'saved');
  await assert.rejects(rootfs.saveDisk('busydisk', file, AbortSignal.timeout(300)), { name: 'AbortError' });
  assert.deepEqual(
    (await readdir(host.scratch)).filter((name) => name.startsWith('saved')),
    [],
  );
  const saving = rootfs.saveDisk('busydisk', file, soon());
  holder.kill('SIGKILL');
  await once(holder, 'exit');
  await saving;
  await rootfs.restoreDisk('otherdisk', file, 64, soon());
  await rootfs.mount('otherdisk', [layer], slot, soon());
  assert.equal(await host.read('otherdisk', slot, 'content'), 'late');
});

test('a disk that stays in use is not saved', async () => {
  await using host = await makeRealHost();
  const [slot] = host.slots;
  const layer = await writtenDisk(host, 'useddisk', 'x');
  const rootfs = host.open();
  await rootfs.mount('useddisk', [layer], slot, soon());
  const file = join(host.scratch, 'saved');
  await assert.rejects(rootfs.saveDisk('useddisk', file, soon()), { code: 'unavailable' });
  await assert.rejects(stat(file), { code: 'ENOENT' });
});

test('a disk that cannot be made larger says what the tool said, without a path of the host', async () => {
  await using host = await makeRealHost();
  await writtenDisk(host, 'earlydisk', 'x');
  const file = join(host.scratch, 'saved');
  await host.open().saveDisk('earlydisk', file, soon());
  await host.asHost('debugfs -w -R "$1" "$2"', ['clri <2>', file]);
  const growing = host.open().restoreDisk('largerdisk', file, 256, soon());
  await assert.rejects(growing, (error: Error) => {
    assert.match(
      error.message,
      /made larger: e2fsck failed with status 4: .*root inode is not a directory/is,
    );
    assert.ok(!error.message.includes(host.scratch), error.message);
    return PlatformError.is(error, 'start_failed');
  });
  await assert.rejects(stat(join(host.folder, 'disks/largerdisk.img')), { code: 'ENOENT' });
});

test('a disk that was not unmounted cleanly is repaired in its copy', async () => {
  await using host = await makeRealHost();
  const [slot] = host.slots;
  const layer = await writtenDisk(host, 'livedisk', 'x');
  const rootfs = host.open();
  const root = await rootfs.mount('livedisk', [layer], slot, soon());
  await host.write('livedisk', slot, 'content', 'survives');
  await host.asHost('sync -f "$1"', [root]);
  // The image of a file system in use is in the state after a crash.
  const [live, crashed] = ['livedisk', 'crasheddisk'].map((handle) =>
    join(host.folder, 'disks', `${handle}.img`),
  );
  await host.hostCalls.copySparse(live ?? '', crashed ?? '');
  const file = join(host.scratch, 'saved');
  await rootfs.saveDisk('crasheddisk', file, soon());
  const stage = join(host.scratch, 'stage');
  await mkdir(stage);
  await host.hostCalls.mountImage({ image: file, target: stage, fstype: 'ext4', readonly: false });
  assert.equal(await readFile(join(stage, 'u/content'), 'utf8'), 'survives');
});

test('copies that fit alone but not together leave whole files only, and say that the host is full', async () => {
  await using host = await makeRealHost();
  await writtenDisk(host, 'largedisk', Buffer.alloc(20 * MIB, 1));
  const small = join(host.scratch, 'small');
  await mkdir(small);
  await host.asHost('mount -t tmpfs -o size=32m svc-small "$1"', [small]);
  await using undo = new AsyncDisposableStack();
  undo.defer(async () => {
    await host.asHost('umount "$1"', [small]);
  });
  const rootfs = host.open();
  const names = ['one', 'two', 'three'];
  // A copy that starts when another is almost done is refused before it begins.
  for (let attempt = 1; attempt <= 20; attempt++) {
    const saved = await Promise.allSettled(
      names.map((name) => rootfs.saveDisk('largedisk', join(small, name), soon())),
    );
    const failed = saved.filter((outcome) => outcome.status === 'rejected');
    assert.ok(failed.length >= 2, 'two of them do not fit');
    for (const { reason } of failed) assert.equal(reason.code, 'insufficient_storage', String(reason));
    const left = await readdir(small);
    assert.equal(left.length, names.length - failed.length);
    if (failed.some(({ reason }) => /no room for a copy/.test(String(reason)))) return;
    for (const name of left) await rm(join(small, name));
  }
  assert.fail('none of them ran into the end of the file system');
});

test('a copy that would leave the host short of space is refused before it begins', async () => {
  await using host = await makeRealHost();
  await writtenDisk(host, 'largedisk', Buffer.alloc(20 * MIB, 1));
  const small = join(host.scratch, 'small');
  await mkdir(small);
  await host.asHost('mount -t tmpfs -o size=24m svc-small "$1"', [small]);
  await using undo = new AsyncDisposableStack();
  undo.defer(async () => {
    await host.asHost('umount "$1"', [small]);
  });
  const saving = host.open({ reserveMib: 8 }).saveDisk('largedisk', join(small, 'one'), soon());
  await assert.rejects(saving, { code: 'insufficient_storage', message: /nearly full/ });
  assert.deepEqual(await readdir(small), []);
});
