import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { mkdir, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { waitUntil } from '@svc/contract/testing';
import type { Slot } from '../network/network.ts';
import { devicesByImage } from '../space/disk-limit.ts';
import { makeRealHost, type RealHost } from '../testing/rootfs-host.ts';
import { makeLayer } from './rootfs.suite.ts';

const MIB = 2 ** 20;
const HANDLE = 'livedisk';
/** Of its mark: where the disk lies in the data folder. */
const MARK = encodeURIComponent(`disks/${HANDLE}.img`);
const soon = () => AbortSignal.timeout(100_000);

/** A mounted disk with so much on it. */
async function mountedDisk(host: RealHost, bytes: number): Promise<Slot> {
  const [slot] = host.slots;
  await mkdir(join(host.folder, 'frozen'), { recursive: true });
  const rootfs = host.open();
  await rootfs.recover([]);
  await rootfs.createDisk(HANDLE, 256, soon());
  await rootfs.mount(HANDLE, [makeLayer(join(host.scratch, 'layer'), {})], slot, soon());
  await host.write(HANDLE, slot, 'content', Buffer.alloc(bytes, 7));
  return slot;
}

/** Freezes or thaws the mounted disk as any program can. */
async function freezer(host: RealHost): Promise<(how: '--freeze' | '--unfreeze') => Promise<void>> {
  const device = `/dev/${devicesByImage().get(join(host.folder, 'disks', `${HANDLE}.img`))}`;
  const second = join(host.scratch, 'second');
  await mkdir(second);
  return async (how) => {
    await host.asHost('mount -t ext4 "$1" "$2" && fsfreeze "$3" "$2" && umount "$2"', [device, second, how]);
  };
}

async function frozenMarks(host: RealHost): Promise<readonly string[]> {
  return await readdir(join(host.folder, 'frozen'));
}

test('a disk that an engine left frozen goes on with the next one, or with the next copy', async () => {
  await using host = await makeRealHost();
  const slot = await mountedDisk(host, 1);
  const freeze = await freezer(host);
  const mark = () => writeFile(join(host.folder, 'frozen', MARK), '');
  // What a helper leaves that is killed in the middle of a copy.
  await mark();
  await freeze('--freeze');
  const waiting = host.write(HANDLE, slot, 'late', 'x');
  await host.liveDisks().recover();
  await waiting;
  assert.deepEqual(await frozenMarks(host), []);
  await mark();
  await freeze('--freeze');
  const next = host.write(HANDLE, slot, 'later', 'y');
  await host.open().copyLiveDisk(HANDLE, join(host.scratch, 'saved'), soon());
  await next;
  assert.deepEqual(await frozenMarks(host), []);
});

test('a disk that another program has frozen is left to it', async () => {
  await using host = await makeRealHost();
  const slot = await mountedDisk(host, 1);
  const freeze = await freezer(host);
  await freeze('--freeze');
  const file = join(host.scratch, 'saved');
  await assert.rejects(host.open().copyLiveDisk(HANDLE, file, soon()), {
    code: 'unavailable',
    message: /another program/,
  });
  // Fails when it is not frozen any more.
  await freeze('--unfreeze');
  await host.write(HANDLE, slot, 'later', 'y');
  assert.ok(!existsSync(file));
  assert.deepEqual(await frozenMarks(host), []);
});

test('the file system is frozen while it is copied', async () => {
  await using host = await makeRealHost();
  await mountedDisk(host, 150 * MIB);
  const freeze = await freezer(host);
  for (let attempt = 1; ; attempt++) {
    assert.ok(attempt <= 20, 'the disk was freezable during every copy');
    const file = join(host.scratch, `saved${attempt}`);
    const copying = Promise.allSettled([host.open().copyLiveDisk(HANDLE, file, soon())]);
    await waitUntil(() => existsSync(`${file}.new`) || existsSync(file), { what: 'the copy begins' });
    // Refused while it is frozen already.
    const wasRefused = await freeze('--freeze').then(
      () => false,
      () => true,
    );
    if (!wasRefused) await freeze('--unfreeze');
    await copying;
    if (wasRefused) break;
  }
});

test('a mark without a disk is removed', async () => {
  await using host = await makeRealHost();
  await mkdir(join(host.folder, 'frozen'), { recursive: true });
  await writeFile(join(host.folder, 'frozen', 'goneforever'), '');
  await host.liveDisks().recover();
  assert.deepEqual(await frozenMarks(host), []);
});

test('a helper that is killed while a disk is frozen fails the copy, and the disk is thawed', async () => {
  await using host = await makeRealHost();
  const slot = await mountedDisk(host, 150 * MIB);
  const rootfs = host.open();
  for (let attempt = 1; ; attempt++) {
    assert.ok(attempt <= 20, 'every copy was made before the helper could be killed');
    const file = join(host.scratch, `saved${attempt}`);
    const copying = Promise.allSettled([rootfs.copyLiveDisk(HANDLE, file, soon())]);
    await waitUntil(() => existsSync(`${file}.new`) || existsSync(file), { what: 'the copy begins' });
    for (const pid of host.hostCalls.pids) process.kill(pid, 'SIGKILL');
    const [{ status }] = await copying;
    await host.write(HANDLE, slot, 'after', String(attempt));
    assert.deepEqual(await frozenMarks(host), []);
    if (status === 'fulfilled') continue;
    assert.ok(!existsSync(file) && !existsSync(`${file}.new`));
    break;
  }
  await rootfs.copyLiveDisk(HANDLE, join(host.scratch, 'whole'), soon());
});

test('a helper that is told to end, and an engine that looks for frozen disks, leave a copy alone that is being made', async () => {
  await using host = await makeRealHost();
  const slot = await mountedDisk(host, 150 * MIB);
  for (let attempt = 1; ; attempt++) {
    assert.ok(attempt <= 20, 'every copy was made before the helper could be told');
    const file = join(host.scratch, `saved${attempt}`);
    const copying = host.open().copyLiveDisk(HANDLE, file, soon());
    await waitUntil(() => existsSync(`${file}.new`) || existsSync(file), { what: 'the copy begins' });
    for (const pid of host.hostCalls.pids) process.kill(pid, 'SIGTERM');
    await host.liveDisks().recover();
    const isCaught = existsSync(`${file}.new`);
    // Fails when the file system was thawed before its end.
    await copying;
    if (isCaught) break;
  }
  await host.write(HANDLE, slot, 'after', 'x');
  assert.deepEqual(await frozenMarks(host), []);
});

test('a copy without enough space on the host fails, and the disk is thawed', async () => {
  await using host = await makeRealHost();
  const slot = await mountedDisk(host, 20 * MIB);
  const small = join(host.scratch, 'small');
  await mkdir(small);
  await host.asHost('mount -t tmpfs -o size=16m svc-small "$1"', [small]);
  await using undo = new AsyncDisposableStack();
  undo.defer(async () => {
    await host.asHost('umount "$1"', [small]);
  });
  // What was looked at before may be gone when it is needed: here a disk that has grown since.
  const copying = host.hostCalls.copyFrozen({
    image: join(host.folder, 'disks', `${HANDLE}.img`),
    device: `/dev/${devicesByImage().get(join(host.folder, 'disks', `${HANDLE}.img`))}`,
    mark: join(host.folder, 'frozen', MARK),
    to: join(small, 'saved'),
    mostMs: 30_000,
  });
  await assert.rejects(copying, { errno: 'ENOSPC' });
  await assert.rejects(host.open().copyLiveDisk(HANDLE, join(small, 'saved'), soon()), {
    code: 'insufficient_storage',
  });
  assert.deepEqual(await readdir(small), []);
  await host.write(HANDLE, slot, 'after', 'x');
});

test('a disk is frozen no longer than its limit, and another one is never frozen in its place', async () => {
  await using host = await makeRealHost();
  const slot = await mountedDisk(host, 150 * MIB);
  const image = join(host.folder, 'disks', `${HANDLE}.img`);
  const device = `/dev/${devicesByImage().get(image)}`;
  const mark = join(host.folder, 'frozen', MARK);
  const to = join(host.scratch, 'saved');
  await assert.rejects(host.hostCalls.copyFrozen({ image, device, mark, to, mostMs: 1 }), {
    errno: 'ETIMEDOUT',
  });
  const unmounted = join(host.scratch, 'unmounted.img');
  await writeFile(unmounted, '');
  await assert.rejects(host.hostCalls.copyFrozen({ image: unmounted, device, mark, to, mostMs: 30_000 }), {
    errno: 'ENXIO',
  });
  assert.ok(!existsSync(to) && !existsSync(mark));
  await host.write(HANDLE, slot, 'after', 'x');
});
