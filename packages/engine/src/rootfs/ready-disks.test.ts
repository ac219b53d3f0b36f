import assert from 'node:assert/strict';
import { existsSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { waitUntil } from '@svc/contract/testing';
import { Fault } from '../testing/fault.ts';
import { loopDevices, makeRealHost, type RealHost } from '../testing/rootfs-host.ts';
import type { OverlayRootfs } from './overlay-rootfs.ts';
import { ReadyDisks } from './ready-disks.ts';
import { makeLayer } from './rootfs.suite.ts';

const soon = () => AbortSignal.timeout(100_000);
const NEXT = { isMountedNext: true };

async function untilReady(host: RealHost, count: number): Promise<void> {
  const isReady = async () =>
    (await host.mounts()).filter((path) => path.includes('/stages/')).length === count;
  await waitUntil(isReady, { what: `${count} disks are ready` });
}

/** With one disk that is ready. */
async function openReady(host: RealHost, hostCalls = host.hostCalls): Promise<OverlayRootfs> {
  const rootfs = host.open({ readyDisks: 1, hostCalls });
  await rootfs.recover([]);
  await untilReady(host, 1);
  return rootfs;
}

test('a start takes a disk that is mounted, which is its own from then on', async () => {
  await using host = await makeRealHost();
  const [slot, other] = host.slots;
  const rootfs = await openReady(host);
  const [device] = await loopDevices(host.folder);
  assert.match(device ?? '', /\/ready[0-9a-f]{16}\.img/);
  const layer = makeLayer(join(host.scratch, 'layer'), { 'etc/name': 'image' });
  await rootfs.createDisk('firstdisk', 16, soon(), NEXT);
  assert.deepEqual(
    (await loopDevices(host.folder)).map((path) => path.trim()),
    [join(host.folder, 'disks', 'firstdisk.img')],
  );
  const root = await rootfs.mount('firstdisk', [layer], slot, soon());
  assert.equal(await readFile(join(root, 'etc/name'), 'utf8'), 'image');
  await host.write('firstdisk', slot, 'kept', 'mine');
  // The next one has nothing of it.
  await untilReady(host, 1);
  await rootfs.createDisk('seconddisk', 16, soon(), NEXT);
  const second = await rootfs.mount('seconddisk', [layer], other, soon());
  assert.equal(existsSync(join(second, 'kept')), false);
  await rootfs.unmount('firstdisk');
  await rootfs.mount('firstdisk', [layer], other, soon());
  assert.equal(await host.read('firstdisk', other, 'kept'), 'mine');
  for (const handle of ['firstdisk', 'seconddisk']) {
    await rootfs.unmount(handle);
    await rootfs.removeDisk(handle);
  }
  await rootfs.close();
  assert.deepEqual(await host.leftovers(), []);
});

test('a disk whose first mount cannot be taken away is used all the same, and nothing is left of it in the end', async () => {
  await using host = await makeRealHost();
  const fault = new Fault(1, 'before');
  const rootfs = await openReady(host, fault.wrap(host.hostCalls, ['removeMountPoint']));
  const [stage = ''] = await host.mounts();
  await rootfs.createDisk('stuckdisk', 16, soon(), NEXT);
  await rootfs.mount('stuckdisk', [makeLayer(join(host.scratch, 'layer'), {})], host.slots[0], soon());
  await host.write('stuckdisk', host.slots[0], 'made', 'x');
  assert.ok(fault.wasInjected && (await host.mounts()).includes(stage));
  await rootfs.unmount('stuckdisk');
  assert.ok(!(await host.mounts()).includes(stage));
  await rootfs.removeDisk('stuckdisk');
  await rootfs.close();
  assert.deepEqual(await host.leftovers(), []);
});

test('a taken disk that is not mounted after all is released', async () => {
  await using host = await makeRealHost();
  const rootfs = await openReady(host);
  await rootfs.createDisk('unmounted', 16, soon(), NEXT);
  await rootfs.unmount('unmounted');
  await rootfs.removeDisk('unmounted');
  await untilReady(host, 1);
  await rootfs.createDisk('saveddisk', 16, soon(), NEXT);
  await rootfs.saveDisk('saveddisk', join(host.scratch, 'saved'), soon());
  const layer = makeLayer(join(host.scratch, 'layer'), {});
  await rootfs.mount('saveddisk', [layer], host.slots[0], soon());
  await rootfs.unmount('saveddisk');
  await rootfs.removeDisk('saveddisk');
  await untilReady(host, 1);
  await rootfs.createDisk('leftdisk', 16, soon(), NEXT);
  await rootfs.close();
  assert.deepEqual(
    (await host.mounts()).filter((path) => path.includes('/stages/')),
    [],
  );
  await rootfs.removeDisk('leftdisk');
  assert.deepEqual(await host.leftovers(), []);
});

test('a start that fails before its mount releases the disk', async () => {
  await using host = await makeRealHost();
  const rootfs = await openReady(host);
  await rootfs.createDisk('hindereddisk', 16, soon(), NEXT);
  const obstacle = join(host.folder, 'mounts', 'hindereddisk');
  writeFileSync(obstacle, 'no folder');
  const layer = makeLayer(join(host.scratch, 'layer'), {});
  await assert.rejects(rootfs.mount('hindereddisk', [layer], host.slots[0], soon()), { code: 'ENOTDIR' });
  rmSync(obstacle);
  await rootfs.unmount('hindereddisk');
  await rootfs.removeDisk('hindereddisk');
  await rootfs.close();
  assert.deepEqual(await host.leftovers(), []);
});

test('disks that are not mounted next, or have another size, are made anew', async () => {
  await using host = await makeRealHost();
  const rootfs = await openReady(host);
  const before = readdirSync(join(host.folder, 'stages'));
  await rootfs.createDisk('restingdisk', 16, soon());
  await rootfs.createDisk('largerdisk', 32, soon(), NEXT);
  assert.deepEqual(readdirSync(join(host.folder, 'stages')), before);
  for (const handle of ['restingdisk', 'largerdisk']) await rootfs.removeDisk(handle);
  await rootfs.close();
  assert.deepEqual(await host.leftovers(), []);
});

test('a prepared disk that was unmounted is mounted again', async () => {
  await using host = await makeRealHost();
  const rootfs = await openReady(host);
  const stage = (await host.mounts()).find((path) => path.includes('/stages/'));
  await host.hostCalls.unmount(stage ?? '');
  await rootfs.createDisk('otherdisk', 16, soon(), NEXT);
  const layer = makeLayer(join(host.scratch, 'layer'), { file: 'there' });
  const root = await rootfs.mount('otherdisk', [layer], host.slots[0], soon());
  assert.equal(await readFile(join(root, 'file'), 'utf8'), 'there');
  await rootfs.unmount('otherdisk');
  await rootfs.removeDisk('otherdisk');
  await rootfs.close();
  assert.deepEqual(await host.leftovers(), []);
});

test('the next engine removes the ready disks of a killed one', async () => {
  await using host = await makeRealHost();
  const killed = host.open({ readyDisks: 2 });
  await killed.recover([]);
  await untilReady(host, 2);
  // One was taken, and its sandbox is on record.
  const disks = join(host.folder, 'disks');
  renameSync(join(disks, readdirSync(disks)[0] ?? ''), join(disks, 'takendisk.img'));
  const next = host.open();
  await next.recover(['takendisk']);
  assert.deepEqual(readdirSync(disks), ['takendisk.img']);
  assert.deepEqual(await host.mounts(), []);
  const layer = makeLayer(join(host.scratch, 'layer'), {});
  await next.mount('takendisk', [layer], host.slots[0], soon());
  await next.unmount('takendisk');
  await next.removeDisk('takendisk');
  assert.deepEqual(await host.leftovers(), []);
});

test('disks are prepared neither during a take nor after the end, and a failure is tried again at the next take', async () => {
  const made: string[] = [];
  const removed: string[] = [];
  let fails = true;
  const warnings: unknown[] = [];
  const ready = new ReadyDisks({
    target: 2,
    make: async () => {
      if (fails) throw new Error('no room');
      made.push(`disk${made.length}`);
      return await Promise.resolve(made.at(-1) ?? '');
    },
    remove: async (name) => {
      removed.push(name);
      if (name === 'disk0') throw new Error('busy');
      await Promise.resolve();
    },
    logger: { warn: (value: unknown) => void warnings.push(value) },
  });
  assert.equal(ready.take(), undefined);
  ready.open();
  await waitUntil(() => warnings.length === 1, { what: 'the failure is told' });
  fails = false;
  assert.equal(ready.take(), undefined);
  await waitUntil(() => made.length === 2, { what: 'two are made' });
  await ready.close();
  assert.deepEqual(removed.toSorted(), ['disk0', 'disk1']);
  assert.equal(warnings.length, 2, 'the one that is busy');
  assert.equal(ready.take(), undefined);
});
