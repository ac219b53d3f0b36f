import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import type { Slot } from '../network/network.ts';
import type { Rootfs } from './rootfs.ts';

/** A host on which engines run one after the other, with two slots for mounts. */
export interface RootfsSuiteHost extends AsyncDisposable {
  /** A folder of the host for layers. */
  readonly scratch: string;
  readonly slots: readonly [Slot, Slot];
  /** The root file systems of a new engine; `recover` was not called. */
  open(): Rootfs;
  /** Writes as root of the sandbox on the mounted disk; rejects with the guest's error. */
  write(handle: string, slot: Slot, path: string, content: string | Uint8Array): Promise<void>;
  read(handle: string, slot: Slot, path: string): Promise<string>;
  remove(handle: string, slot: Slot, path: string): Promise<void>;
  /** All files, mounts and loop devices of this engine's disks. */
  leftovers(): Promise<readonly string[]>;
}

const MIB = 2 ** 20;
const soon = () => AbortSignal.timeout(100_000);
const outOfSpace = /no space left/i;

/** Makes a layer; null is a whiteout. */
export function makeLayer(folder: string, files: Readonly<Record<string, string | null>>): string {
  mkdirSync(folder, { recursive: true });
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    if (content === null) execFileSync('mknod', [join(folder, path), 'c', '0', '0']);
    else writeFileSync(join(folder, path), content);
  }
  return folder;
}

/** The contract of the port. */
export function rootfsSuite(name: string, makeHost: () => Promise<RootfsSuiteHost>): void {
  test(`${name}: a higher layer wins and its whiteouts hide what lies below`, async () => {
    await using host = await makeHost();
    const [slot] = host.slots;
    const rootfs = host.open();
    await rootfs.recover([]);
    const low = makeLayer(join(host.scratch, 'low'), {
      'etc/name': 'low',
      'etc/gone': 'x',
      'srv/kept': 'low',
    });
    const high = makeLayer(join(host.scratch, 'high'), {
      'etc/name': 'high',
      'etc/gone': null,
      'new/file': 'high',
    });
    await rootfs.createDisk('layersdisk', 16, soon());
    const root = await rootfs.mount('layersdisk', [low, high], slot, soon());
    assert.match(root, /^\//);
    assert.equal(await host.read('layersdisk', slot, 'etc/name'), 'high');
    assert.equal(await host.read('layersdisk', slot, 'srv/kept'), 'low');
    assert.equal(await host.read('layersdisk', slot, 'new/file'), 'high');
    await assert.rejects(host.read('layersdisk', slot, 'etc/gone'), /no such file/i);
  });

  test(`${name}: what a guest writes and removes stays across mounts, also in another slot, and spares the layers`, async () => {
    await using host = await makeHost();
    const [first, second] = host.slots;
    const rootfs = host.open();
    await rootfs.recover([]);
    const layer = makeLayer(join(host.scratch, 'layer'), { motd: 'from the image', victim: 'image' });
    await rootfs.createDisk('keptdisk', 16, soon());
    await rootfs.createDisk('otherdisk', 16, soon());
    await rootfs.mount('keptdisk', [layer], first, soon());
    await host.write('keptdisk', first, 'motd', 'changed');
    await host.write('keptdisk', first, 'fresh', 'new');
    await host.remove('keptdisk', first, 'victim');
    await rootfs.unmount('keptdisk');
    await rootfs.mount('keptdisk', [layer], second, soon());
    assert.equal(await host.read('keptdisk', second, 'motd'), 'changed');
    assert.equal(await host.read('keptdisk', second, 'fresh'), 'new');
    await assert.rejects(host.read('keptdisk', second, 'victim'), /no such file/i);
    await host.write('keptdisk', second, 'fresh', 'rewritten in the second slot');
    await rootfs.mount('otherdisk', [layer], first, soon());
    assert.equal(await host.read('otherdisk', first, 'motd'), 'from the image');
    assert.equal(await host.read('otherdisk', first, 'victim'), 'image');
  });

  test(`${name}: a disk takes as much as asked for, then is full, and usable again once something is removed`, async () => {
    await using host = await makeHost();
    const [slot] = host.slots;
    const rootfs = host.open();
    await rootfs.recover([]);
    await rootfs.createDisk('smalldisk', 8, soon());
    await rootfs.mount('smalldisk', [makeLayer(join(host.scratch, 'empty'), {})], slot, soon());
    const before = rootfs.usage('smalldisk');
    assert.ok(before !== undefined && before.totalBytes >= 8 * MIB && before.totalBytes < 8.5 * MIB);
    await host.write('smalldisk', slot, 'most', Buffer.alloc(7.5 * MIB, 1));
    await assert.rejects(host.write('smalldisk', slot, 'more', Buffer.alloc(MIB, 1)), outOfSpace);
    const full = rootfs.usage('smalldisk');
    assert.ok(full !== undefined && full.usedBytes >= 7.5 * MIB && full.usedBytes <= full.totalBytes);
    await host.remove('smalldisk', slot, 'most');
    await host.write('smalldisk', slot, 'more', Buffer.alloc(MIB, 1));
  });

  test(`${name}: a saved disk is restored as another one, and neither sees what the other does from then on`, async () => {
    await using host = await makeHost();
    const [slot, otherSlot] = host.slots;
    const rootfs = host.open();
    await rootfs.recover([]);
    const layer = makeLayer(join(host.scratch, 'layer'), { motd: 'image', victim: 'image' });
    const file = join(host.scratch, 'saved');
    await rootfs.createDisk('firstdisk', 16, soon());
    await rootfs.mount('firstdisk', [layer], slot, soon());
    await host.write('firstdisk', slot, 'motd', 'when saved');
    await host.remove('firstdisk', slot, 'victim');
    await rootfs.unmount('firstdisk');
    await rootfs.saveDisk('firstdisk', file, soon());
    await rootfs.mount('firstdisk', [layer], slot, soon());
    await host.write('firstdisk', slot, 'motd', 'later');
    await rootfs.restoreDisk('seconddisk', file, 16, soon());
    await rootfs.restoreDisk('thirddisk', file, 16, soon());
    rmSync(file);
    await rootfs.mount('seconddisk', [layer], otherSlot, soon());
    assert.equal(await host.read('seconddisk', otherSlot, 'motd'), 'when saved');
    await assert.rejects(host.read('seconddisk', otherSlot, 'victim'), /no such file/i);
    await host.write('seconddisk', otherSlot, 'motd', 'by the second');
    await rootfs.mount('thirddisk', [layer], otherSlot, soon());
    assert.equal(await host.read('thirddisk', otherSlot, 'motd'), 'when saved');
    assert.equal(await host.read('firstdisk', slot, 'motd'), 'later');
  });

  test(`${name}: the copy of a mounted disk has all that was written, and the disk goes on`, async () => {
    await using host = await makeHost();
    const [slot, otherSlot] = host.slots;
    const rootfs = host.open();
    await rootfs.recover([]);
    const layer = makeLayer(join(host.scratch, 'layer'), { motd: 'image', victim: 'image' });
    const file = join(host.scratch, 'saved');
    await rootfs.createDisk('livedisk', 16, soon());
    await assert.rejects(rootfs.copyLiveDisk('livedisk', file, soon()), /not mounted/);
    await rootfs.mount('livedisk', [layer], slot, soon());
    await host.write('livedisk', slot, 'motd', 'when copied');
    await host.write('livedisk', slot, 'much', 'x'.repeat(300_000));
    await host.remove('livedisk', slot, 'victim');
    assert.ok((await rootfs.copyLiveDisk('livedisk', file, soon())) >= 0);
    await host.write('livedisk', slot, 'motd', 'later');
    await rootfs.settleCopy(file, soon());
    await rootfs.restoreDisk('seconddisk', file, 16, soon());
    await rootfs.mount('seconddisk', [layer], otherSlot, soon());
    assert.equal(await host.read('seconddisk', otherSlot, 'motd'), 'when copied');
    assert.equal(await host.read('seconddisk', otherSlot, 'much'), 'x'.repeat(300_000));
    await assert.rejects(host.read('seconddisk', otherSlot, 'victim'), /no such file/i);
    assert.equal(await host.read('livedisk', slot, 'motd'), 'later');
    await rootfs.unmount('livedisk');
    await rootfs.mount('livedisk', [layer], slot, soon());
    assert.equal(await host.read('livedisk', slot, 'motd'), 'later');
  });

  test(`${name}: a disk is restored as large as asked for, and never smaller than it was`, async () => {
    await using host = await makeHost();
    const [slot] = host.slots;
    const rootfs = host.open();
    await rootfs.recover([]);
    const layer = makeLayer(join(host.scratch, 'empty'), {});
    const file = join(host.scratch, 'saved');
    await rootfs.createDisk('smalldisk', 16, soon());
    await rootfs.mount('smalldisk', [layer], slot, soon());
    await host.write('smalldisk', slot, 'kept', 'x'.repeat(5000));
    await rootfs.unmount('smalldisk');
    await rootfs.saveDisk('smalldisk', file, soon());
    for (const [handle, sizeMib, leastMib] of [
      ['largedisk', 64, 64],
      ['equaldisk', 16, 16],
      ['lesserdisk', 8, 16],
    ] as const) {
      await rootfs.restoreDisk(handle, file, sizeMib, soon());
      await rootfs.mount(handle, [layer], slot, soon());
      assert.equal(await host.read(handle, slot, 'kept'), 'x'.repeat(5000));
      const totalBytes = rootfs.usage(handle)?.totalBytes ?? 0;
      assert.ok(
        totalBytes >= leastMib * MIB && totalBytes < leastMib * 1.1 * MIB,
        `${handle}: ${totalBytes}`,
      );
    }
    await host.write('largedisk', slot, 'much', Buffer.alloc(60 * MIB, 1));
  });

  test(`${name}: usage is known while a disk is mounted, and only then`, async () => {
    await using host = await makeHost();
    const [slot] = host.slots;
    const rootfs = host.open();
    await rootfs.recover([]);
    assert.equal(rootfs.usage('usagedisk'), undefined);
    await rootfs.createDisk('usagedisk', 16, soon());
    assert.equal(rootfs.usage('usagedisk'), undefined);
    await rootfs.mount('usagedisk', [makeLayer(join(host.scratch, 'empty'), {})], slot, soon());
    assert.ok(rootfs.usage('usagedisk'));
    await rootfs.unmount('usagedisk');
    assert.equal(rootfs.usage('usagedisk'), undefined);
  });

  test(`${name}: unmount and removeDisk can be repeated, also for a disk that never was, and leave nothing`, async () => {
    await using host = await makeHost();
    const [slot] = host.slots;
    const rootfs = host.open();
    await rootfs.recover([]);
    await rootfs.createDisk('gonedisk', 16, soon());
    await rootfs.mount('gonedisk', [makeLayer(join(host.scratch, 'empty'), {})], slot, soon());
    for (const handle of ['gonedisk', 'gonedisk', 'neverexisted']) {
      await rootfs.unmount(handle);
      await rootfs.removeDisk(handle);
    }
    assert.deepEqual(await host.leftovers(), []);
  });

  test(`${name}: recover keeps what is in use and removes the rest; a second time it changes nothing`, async () => {
    await using host = await makeHost();
    const [slot] = host.slots;
    const before = host.open();
    await before.recover([]);
    const layer = makeLayer(join(host.scratch, 'layer'), { name: 'image' });
    for (const handle of ['runningdisk', 'staledisk', 'stoppeddisk', 'idledisk']) {
      await before.createDisk(handle, 16, soon());
    }
    await before.mount('runningdisk', [layer], slot, soon());
    await before.mount('staledisk', [layer], slot, soon());
    await host.write('runningdisk', slot, 'name', 'written before');

    const after = host.open();
    await after.recover(['runningdisk', 'stoppeddisk']);
    const kept = await host.leftovers();
    await after.recover(['runningdisk', 'stoppeddisk']);
    assert.deepEqual(await host.leftovers(), kept);
    assert.equal(await host.read('runningdisk', slot, 'name'), 'written before');
    assert.ok(after.usage('runningdisk'));
    assert.equal(after.usage('staledisk'), undefined);
    await assert.rejects(after.mount('idledisk', [layer], slot, soon()));
    await after.unmount('idledisk');
    await after.mount('stoppeddisk', [layer], slot, soon());
    await after.unmount('runningdisk');
    await after.mount('runningdisk', [layer], slot, soon());
    assert.equal(await host.read('runningdisk', slot, 'name'), 'written before');
    await host.open().recover([]);
    assert.deepEqual(await host.leftovers(), []);
  });

  test(`${name}: 20 disks are made, used and removed at once`, async () => {
    await using host = await makeHost();
    const [slot] = host.slots;
    const rootfs = host.open();
    await rootfs.recover([]);
    const layer = makeLayer(join(host.scratch, 'layer'), { name: 'image' });
    const handles = Array.from({ length: 20 }, (_, index) => `manydisk${index}`);
    await Promise.all(
      handles.map(async (handle) => {
        await rootfs.createDisk(handle, 16, soon());
        await rootfs.mount(handle, [layer], slot, soon());
        await host.write(handle, slot, 'name', handle);
      }),
    );
    for (const handle of handles) assert.equal(await host.read(handle, slot, 'name'), handle);
    await Promise.all(
      handles.map(async (handle) => {
        await rootfs.unmount(handle);
        await rootfs.removeDisk(handle);
      }),
    );
    assert.deepEqual(await host.leftovers(), []);
  });

  test(`${name}: handles that could leave the folder, senseless sizes and an aborted signal are refused without a trace`, async () => {
    await using host = await makeHost();
    const [slot] = host.slots;
    const rootfs = host.open();
    await rootfs.recover([]);
    const saved = join(host.scratch, 'saved');
    for (const handle of [
      '../escaped',
      'with/slash',
      'short',
      'UPPERCASE',
      'x'.repeat(33),
      'nul\0handle',
      '',
    ]) {
      await assert.rejects(rootfs.createDisk(handle, 16, soon()), /not a disk handle/);
      await assert.rejects(rootfs.mount(handle, [], slot, soon()), /not a disk handle/);
      await assert.rejects(rootfs.unmount(handle), /not a disk handle/);
      await assert.rejects(rootfs.removeDisk(handle), /not a disk handle/);
      await assert.rejects(rootfs.saveDisk(handle, saved, soon()), /not a disk handle/);
      await assert.rejects(rootfs.copyLiveDisk(handle, saved, soon()), /not a disk handle/);
      await assert.rejects(rootfs.restoreDisk(handle, saved, 16, soon()), /not a disk handle/);
      assert.throws(() => rootfs.usage(handle), /not a disk handle/);
    }
    for (const sizeMib of [0, -1, 1.5, Number.NaN]) {
      await assert.rejects(rootfs.restoreDisk('sizeddisk', saved, sizeMib, soon()), /not a disk size/);
      await assert.rejects(rootfs.createDisk('sizeddisk', sizeMib, soon()), /not a disk size/);
    }
    await assert.rejects(rootfs.createDisk('latedisk', 16, AbortSignal.abort()), { name: 'AbortError' });
    await rootfs.createDisk('latedisk', 16, soon());
    await assert.rejects(rootfs.saveDisk('latedisk', saved, AbortSignal.abort()), { name: 'AbortError' });
    await assert.rejects(rootfs.restoreDisk('otherdisk', saved, 16, AbortSignal.abort()), {
      name: 'AbortError',
    });
    await assert.rejects(rootfs.copyLiveDisk('latedisk', saved, AbortSignal.abort()), { name: 'AbortError' });
    await assert.rejects(rootfs.saveDisk('neverexisted', saved, soon()));
    await assert.rejects(rootfs.copyLiveDisk('neverexisted', saved, soon()));
    assert.ok(!existsSync(saved));
    await assert.rejects(rootfs.restoreDisk('otherdisk', saved, 16, soon()));
    await assert.rejects(rootfs.mount('latedisk', ['/'], slot, AbortSignal.abort()), { name: 'AbortError' });
    await rootfs.removeDisk('latedisk');
    assert.deepEqual(await host.leftovers(), []);
  });
}
