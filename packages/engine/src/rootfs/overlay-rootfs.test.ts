import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, chown, link, mkdir, open, readFile, stat, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { PlatformError } from '@svc/contract/errors';
import { waitUntil } from '@svc/contract/testing';
import { loopDevices, makeRealHost } from '../testing/rootfs-host.ts';
import { makeLayer, rootfsSuite } from './rootfs.suite.ts';

rootfsSuite('overlay', makeRealHost);
rootfsSuite('overlay on an older kernel', () => makeRealHost({ isOlderKernel: true }));

const soon = () => AbortSignal.timeout(100_000);

test('the guest sees the ids of the image, the host unprivileged ones, the disk neither', async () => {
  await using host = await makeRealHost();
  const [first, second] = host.slots;
  const rootfs = host.open();
  await rootfs.recover([]);
  const layer = makeLayer(join(host.scratch, 'layer'), { 'bin/tool': 'x', 'home/user/file': 'y' });
  await chown(join(layer, 'home/user/file'), 1000, 1001);
  await rootfs.createDisk('ownerdisk', 16, soon());
  const root = await rootfs.mount('ownerdisk', [layer], first, soon());
  await host.asGuest(first, 'cd "$1" && touch made && chown 7:8 made', [root]);
  const owners = 'cd "$1" && stat -c "%n %u %g" . bin/tool home/user/file made proc';
  const seen = '. 0 0\nbin/tool 0 0\nhome/user/file 1000 1001\nmade 7 8\nproc 0 0\n';
  assert.equal(await host.asGuest(first, owners, [root]), seen);
  assert.equal((await stat(join(root, 'made'))).uid, first.idBase + 7);
  assert.equal((await stat(join(root, 'home/user/file'))).gid, first.idBase + 1001);
  await rootfs.unmount('ownerdisk');
  await rootfs.mount('ownerdisk', [layer], second, soon());
  assert.equal(await host.asGuest(second, owners, [root]), seen);
  assert.equal((await stat(join(root, 'made'))).uid, second.idBase + 7);
});

for (const isOlderKernel of [false, true]) {
  test(`one mount is in the tree, without device files and set-user-id, and tells no path of the host${isOlderKernel ? ', on an older kernel' : ''}`, async () => {
    await using host = await makeRealHost({ isOlderKernel });
    const rootfs = host.open();
    await rootfs.recover([]);
    await rootfs.createDisk('quietdisk', 16, soon());
    const layer = makeLayer(join(host.scratch, 'layer'), {});
    const root = await rootfs.mount('quietdisk', [layer], host.slots[0], soon());
    await waitUntil(async () => (await host.mounts()).length === 1, 'the disk is in the overlay alone');
    assert.deepEqual(await host.mounts(), [root]);
    const lines = (await readFile('/proc/self/mountinfo', 'utf8')).split('\n');
    const entry = lines.find((line) => line.includes(root)) ?? '';
    assert.match(entry, / rw,nosuid,nodev,relatime .*- overlay overlay rw,/);
    assert.ok(!entry.replace(root, '').includes(host.scratch), entry);
  });
}

test('an opaque folder of a layer hides what lies below', async () => {
  await using host = await makeRealHost();
  const [slot] = host.slots;
  const rootfs = host.open();
  await rootfs.recover([]);
  const low = makeLayer(join(host.scratch, 'low'), { 'etc/hidden': 'x' });
  await rootfs.createDisk('opaquedisk', 16, soon());
  const root = await rootfs.mount('opaquedisk', [low], slot, soon());
  // The kernel marks a folder opaque that replaces one of a lower layer; the disk then serves as a layer.
  await host.asGuest(slot, 'cd "$1" && rm -r etc && mkdir etc && touch etc/seen', [root]);
  await rootfs.unmount('opaquedisk');
  const target = join(host.scratch, 'high');
  await mkdir(target);
  const image = join(host.folder, 'disks', 'opaquedisk.img');
  await host.hostCalls.mountImage({ image, target, fstype: 'ext4', readonly: true });
  await rootfs.createDisk('abovedisk', 16, soon());
  const above = await rootfs.mount('abovedisk', [low, join(target, 'u')], slot, soon());
  assert.equal(await host.asGuest(slot, 'ls "$1/etc"', [above]), 'seen\n');
});

test('the mount points of a sandbox are real folders, also where the image has other files', async () => {
  await using host = await makeRealHost();
  const [slot] = host.slots;
  const rootfs = host.open();
  await rootfs.recover([]);
  const layer = makeLayer(join(host.scratch, 'layer'), { proc: 'a file', 'sys/fs/kept': '' });
  await symlink('/etc', join(layer, 'dev'));
  await rootfs.createDisk('pointsdisk', 16, soon());
  const root = await rootfs.mount('pointsdisk', [layer], slot, soon());
  const kinds = await host.asGuest(slot, 'cd "$1" && stat -c "%n %F %a" .svc dev proc sys', [root]);
  assert.equal(kinds, ['.svc', 'dev', 'proc', 'sys'].map((name) => `${name} directory 755\n`).join(''));
});

test('an image of 300 layers is mounted, its topmost on top', async () => {
  await using host = await makeRealHost();
  const [slot] = host.slots;
  const rootfs = host.open();
  await rootfs.recover([]);
  const layers = Array.from({ length: 300 }, (_, index) =>
    makeLayer(join(host.scratch, `layer${index}`), { top: String(index), [`only${index}`]: '' }),
  );
  await rootfs.createDisk('talldisk', 16, soon());
  const root = await rootfs.mount('talldisk', layers, slot, soon());
  assert.equal(await host.asGuest(slot, 'cat "$1/top"; ls "$1" | grep -c only', [root]), '299300\n');
});

test('a disk whose last run still holds it is not mounted a second time, and is once that run ends', async () => {
  await using host = await makeRealHost();
  const [slot] = host.slots;
  const rootfs = host.open();
  await rootfs.recover([]);
  const layer = makeLayer(join(host.scratch, 'layer'), {});
  await rootfs.createDisk('busydisk', 16, soon());
  const root = await rootfs.mount('busydisk', [layer], slot, soon());
  await host.write('busydisk', slot, 'file', 'written by the last run');
  const holder = spawn('sleep', ['60'], { cwd: root, stdio: 'ignore' });
  await once(holder, 'spawn');
  await rootfs.unmount('busydisk');
  const image = join(host.folder, 'disks', 'busydisk.img');
  const stage = join(host.scratch, 'stage');
  await mkdir(stage);
  const again = host.hostCalls.mountImage({ image, target: stage, fstype: 'ext4', readonly: false });
  await assert.rejects(again, { errno: 'EBUSY' });
  await assert.rejects(rootfs.mount('busydisk', [layer], slot, AbortSignal.timeout(100)), {
    name: 'TimeoutError',
  });

  const waiting = rootfs.mount('busydisk', [layer], slot, soon());
  holder.kill('SIGKILL');
  await waiting;
  assert.equal(await host.read('busydisk', slot, 'file'), 'written by the last run');
  assert.equal((await loopDevices(host.folder)).length, 1);
});

test('a disk that was not unmounted cleanly is checked and repaired before it is mounted', async () => {
  await using host = await makeRealHost();
  const [slot] = host.slots;
  const rootfs = host.open();
  await rootfs.recover([]);
  const layer = makeLayer(join(host.scratch, 'layer'), {});
  const disk = (handle: string) => join(host.folder, 'disks', `${handle}.img`);
  await rootfs.createDisk('livedisk', 16, soon());
  const root = await rootfs.mount('livedisk', [layer], slot, soon());
  await host.write('livedisk', slot, 'file', 'survives');
  await host.asHost('sync -f "$1"', [root]);
  // What is on disk while the file system is in use is what a crash leaves.
  await host.hostCalls.copySparse(disk('livedisk'), disk('crashdisk'));
  await mkdir(join(host.scratch, 'stage'));
  const unchecked = {
    image: disk('crashdisk'),
    target: join(host.scratch, 'stage'),
    fstype: 'ext4',
    readonly: false,
  };
  await assert.rejects(host.hostCalls.mountImage(unchecked), { errno: 'EUCLEAN' });
  await rootfs.mount('crashdisk', [layer], slot, soon());
  assert.equal(await host.read('crashdisk', slot, 'file'), 'survives');
  await rootfs.unmount('crashdisk');
  await host.asHost('e2fsck -fn "$1"', [disk('crashdisk')]);
});

test('a disk damaged beyond repair is reported as such and leaves no mount', async () => {
  await using host = await makeRealHost();
  const rootfs = host.open();
  await rootfs.recover([]);
  await rootfs.createDisk('ruineddisk', 16, soon());
  const file = await open(join(host.folder, 'disks', 'ruineddisk.img'), 'r+');
  // The state "in use", without the checksum that belongs to it, in the only superblock.
  await file.write(Buffer.from([0, 0]), 0, 2, 1024 + 0x3a);
  await file.close();
  const layer = makeLayer(join(host.scratch, 'layer'), {});
  const mounting = rootfs.mount('ruineddisk', [layer], host.slots[0], soon());
  await assert.rejects(mounting, (error) => PlatformError.is(error, 'start_failed'));
  await rootfs.removeDisk('ruineddisk');
  assert.deepEqual(await host.leftovers(), []);
});

test('no disk is made when the host is short of space', async () => {
  await using host = await makeRealHost();
  const rootfs = host.open({ reserveMib: 2 ** 40 });
  await rootfs.recover([]);
  await assert.rejects(rootfs.createDisk('nospacedisk', 16, soon()), (error) =>
    PlatformError.is(error, 'insufficient_storage'),
  );
  assert.deepEqual(await host.leftovers(), []);
});

test('recover removes stacked mounts, half-made disks and stages of a process that died', async () => {
  await using host = await makeRealHost();
  const [slot] = host.slots;
  const rootfs = host.open();
  await rootfs.recover([]);
  const layer = makeLayer(join(host.scratch, 'layer'), {});
  await rootfs.createDisk('stackdisk', 16, soon());
  const root = await rootfs.mount('stackdisk', [layer], slot, soon());
  for (let times = 0; times < 3; times++) {
    await host.hostCalls.bind({ root: layer, path: '.', target: root, readonly: true, idmap: null });
  }
  const stage = join(host.folder, 'stages', 'halfdisk1');
  await rootfs.createDisk('halfdisk1', 16, soon());
  await link(join(host.folder, 'disks', 'halfdisk1.img'), join(host.folder, 'disks', 'halfdisk2.img.new'));
  await mkdir(stage);
  const image = join(host.folder, 'disks', 'halfdisk1.img');
  await host.hostCalls.mountImage({ image, target: stage, fstype: 'ext4', readonly: false });
  await writeFile(join(host.folder, 'disks', 'halfdisk3.img.new'), 'half');
  await host.open().recover([]);
  assert.deepEqual(await host.leftovers(), []);
});

test('files of other disks and folders stay closed to a guest that knows where they are', async () => {
  await using host = await makeRealHost();
  const [slot] = host.slots;
  const rootfs = host.open();
  await rootfs.recover([]);
  const look = (folder: string) => host.asGuest(slot, 'ls "$1"', [join(host.folder, folder)]);
  for (const folder of ['', 'disks', 'stages', 'templates', 'mounts'])
    await assert.rejects(look(folder), /denied/);
  await chmod(host.folder, 0o755);
  assert.match(await look(''), /disks/, 'the guest cannot look at anything, so the above proves nothing');
});

test('on the host only root of its own sandbox can open a root file system', async () => {
  await using host = await makeRealHost();
  const [slot, other] = host.slots;
  const rootfs = host.open();
  await rootfs.recover([]);
  await chmod(host.folder, 0o711);
  const layer = makeLayer(join(host.scratch, 'layer'), { 'etc/secret': 'of the guest' });
  await rootfs.createDisk('privatedisk', 16, soon());
  // As every user of the host finds it in the table of mounts.
  const root = await rootfs.mount('privatedisk', [layer], slot, soon());
  assert.match(await host.asGuest(slot, 'cat "$1/etc/secret"', [root]), /of the guest/);
  await assert.rejects(host.asGuest(other, 'cat "$1/etc/secret"', [root]), /denied/);
  const asOtherUser = 'setpriv --reuid 65534 --regid 65534 --clear-groups cat "$1/etc/secret"';
  await assert.rejects(host.asHost(asOtherUser, [root]), /denied/);
  await rootfs.unmount('privatedisk');
  await rootfs.removeDisk('privatedisk');
  assert.deepEqual(await host.leftovers(), []);
});

test('disks that take long to write out on unmount do not hold up the making of others', async () => {
  await using host = await makeRealHost();
  const [slot] = host.slots;
  const rootfs = host.open();
  await rootfs.recover([]);
  const layer = makeLayer(join(host.scratch, 'layer'), {});
  const dirty = ['dirtydisk1', 'dirtydisk2', 'dirtydisk3'];
  const round = async (quick: string): Promise<readonly string[]> => {
    for (const handle of dirty) {
      await rootfs.createDisk(handle, 256, soon());
      await rootfs.mount(handle, [layer], slot, soon());
      await host.asGuest(slot, 'dd if=/dev/zero of="$1/fill" bs=1M count=150 2>&1', [
        join(host.folder, 'mounts', handle, 'root'),
      ]);
    }
    const ended: string[] = [];
    const unmounting = dirty.map(async (handle) => {
      await rootfs.unmount(handle);
      ended.push(handle);
    });
    await rootfs.createDisk(quick, 16, soon());
    await rootfs.mount(quick, [layer], slot, soon());
    ended.push(quick);
    await Promise.all(unmounting);
    for (const handle of dirty) await rootfs.removeDisk(handle);
    return ended;
  };
  // On a busy machine the new disk may be slower than the others for reasons of its own; one that has to wait is so always.
  const orders: string[] = [];
  for (let attempt = 1; attempt <= 5; attempt += 1) {
    const ended = await round(`quickdisk${attempt}`);
    if (ended.at(-1) !== `quickdisk${attempt}`) return;
    orders.push(ended.join(', '));
  }
  assert.fail(`the new disk waited for all others: ${orders.join('; ')}`);
});
