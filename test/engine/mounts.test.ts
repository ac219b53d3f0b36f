import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { globSync, readFileSync, statSync } from 'node:fs';
import { chmod, chown, mkdir, mkdtemp, rm, symlink, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, beforeEach, describe, test } from 'node:test';
import { promisify } from 'node:util';
import { waitUntil } from '@svc/contract/testing';
import type { Mount, Patch } from '@svc/contract';
import { CLASSES, startSandbox, type TestSandbox } from './sandbox-fixture.ts';
import { TestEngine } from './start-engine.ts';

const MIB = 1024 * 1024;
const HOST_USER = 4242;

let engine: TestEngine;
let root: string;
let disks: string;
before(async () => {
  root = await mkdtemp(join(tmpdir(), 'svc-bind-'));
  disks = await mkdtemp(join(tmpdir(), 'svc-disks-'));
  engine = await TestEngine.start({ args: ['--bind-root', root, '--disk-image-root', disks] });
});
after(async () => {
  await engine.destroy();
  await rm(root, { recursive: true });
  await rm(disks, { recursive: true });
});

beforeEach(async () => {
  await rm(join(root, 'shared'), { recursive: true, force: true });
  await mkdir(join(root, 'shared/below'), { recursive: true });
  await writeFile(join(root, 'shared/file'), 'of the host\n');
  for (const path of ['shared', 'shared/below', 'shared/file'])
    await chown(join(root, path), HOST_USER, HOST_USER);
});

for (const isolation of CLASSES) {
  describe(`on class ${isolation}`, { concurrency: false }, () => {
    const withMounts = (...mounts: Mount[]): Promise<TestSandbox> =>
      startSandbox(engine, isolation, { mounts });

    async function refusal(mount: Mount): Promise<{ code?: string; message: string }> {
      const error = await withMounts(mount).then(
        () => assert.fail('it was mounted'),
        (reason: Error) => reason,
      );
      assert.ok(!error.message.includes(engine.runFolder), 'no path of the engine is told');
      return error;
    }

    test('a tmpfs has its size, its flags, and is empty at each start', async () => {
      const sandbox = await withMounts(
        { type: 'tmpfs', guest: '/small', size_mib: 2 },
        { type: 'tmpfs', guest: '/plain', options: { noexec: true } },
        { type: 'tmpfs', guest: '/fixed', options: { readonly: true } },
      );
      const { stderr } = await sandbox.sh('dd if=/dev/zero of=/small/fill bs=1M count=9');
      assert.match(stderr, /No space left/);
      assert.equal((await sandbox.sh('wc -c < /small/fill')).stdout.trim(), '2097152');
      const run = (path: string) => sandbox.sh(`cp /bin/busybox ${path}/b && ${path}/b true`);
      assert.notEqual((await run('/plain')).code, 0);
      assert.match((await sandbox.sh('touch /fixed/x')).stderr, /Read-only/);
      assert.equal((await sandbox.sh('touch /plain/y', { user: 'user' })).code, 0, 'anyone may write');
      await engine.client.stopSandbox(sandbox.id, { graceMs: 0 });
      await engine.client.startSandbox(sandbox.id);
      assert.equal((await sandbox.sh('ls /small /plain')).stdout.trim(), '/plain:\n\n/small:');
      await sandbox.remove();
    });

    test('mounts below mounts come in the right order', async () => {
      const sandbox = await withMounts(
        { type: 'tmpfs', guest: '/a/b/c', size_mib: 1 },
        { type: 'tmpfs', guest: '/a', size_mib: 2 },
      );
      const { stdout } = await sandbox.sh(
        'df -k /a /a/b/c | tail -n 2 | while read x size rest; do echo $size; done',
      );
      assert.equal(stdout, '2048\n1024\n');
      await sandbox.remove();
    });

    test('a volume is shared by the sandboxes that mount it and keeps its data and owners', async () => {
      const id = `shared-${isolation}`;
      await engine.client.volumes.createVolume(id, 32);
      const volume: Mount = { type: 'named', name: id, guest: '/vol' };
      const [one, two] = await Promise.all([withMounts(volume), withMounts(volume)]);
      await one.sh('echo data > /vol/file; chown 1000:7 /vol/file; mkdir -m 700 /vol/private');
      assert.equal((await two.sh('cat /vol/file; stat -c %u:%g /vol/file')).stdout, 'data\n1000:7\n');
      assert.equal((await two.sh('echo more >> /vol/file', { user: 'user' })).code, 0);
      assert.equal((await one.sh('cat /vol/file')).stdout, 'data\nmore\n');
      assert.notEqual((await two.sh('ls /vol/private', { user: 'user' })).code, 0);
      await assert.rejects(engine.client.volumes.removeVolume(id), { code: 'volume_in_use' });
      await one.remove();
      await assert.rejects(engine.client.volumes.removeVolume(id), { code: 'volume_in_use' });
      await two.remove();
      const next = await startSandbox(engine, 'container', { mounts: [volume] });
      assert.equal((await next.sh('cat /vol/file; stat -c %u:%g /vol/file')).stdout, 'data\nmore\n1000:7\n');
      await next.remove();
      const content = Buffer.concat(
        await Array.fromAsync(await engine.client.volumes.readVolumeFile(id, 'file')),
      );
      assert.equal(content.toString(), 'data\nmore\n');
      await engine.client.volumes.removeVolume(id);
    });

    test('a volume ends at its capacity, inside', async () => {
      const id = `small-${isolation}`;
      await engine.client.volumes.createVolume(id, 16);
      const sandbox = await withMounts({ type: 'named', name: id, guest: '/vol' });
      const { stderr } = await sandbox.sh('dd if=/dev/zero of=/vol/fill bs=1M count=64');
      assert.match(stderr, /No space left/);
      const written = Number((await sandbox.sh('wc -c < /vol/fill')).stdout);
      // The file system is made so that its own records come on top of the capacity.
      assert.ok(written >= 15 * MIB && written < 20 * MIB, String(written));
      assert.equal((await sandbox.sh('echo fine > /root/x && cat /root/x')).stdout, 'fine\n');
      await sandbox.remove();
      await engine.client.volumes.removeVolume(id);
    });

    test('a volume can be read-only, without programs, and shown as of another owner', async () => {
      const id = `options-${isolation}`;
      await engine.client.volumes.createVolume(id, 32);
      await engine.client.volumes.writeVolumeFile(id, 'file', oneChunk('by the caller\n'));
      const fixed = await withMounts({
        type: 'named',
        name: id,
        guest: '/vol',
        options: { readonly: true },
      });
      assert.match((await fixed.sh('echo x > /vol/file')).stderr, /Read-only/);
      assert.equal((await fixed.sh('cat /vol/file')).stdout, 'by the caller\n');
      await fixed.remove();
      const owned = await withMounts({
        type: 'named',
        name: id,
        guest: '/vol',
        options: { override_uid: 1000, override_gid: 1000 },
      });
      assert.equal((await owned.sh('stat -c %u:%g /vol /vol/file')).stdout, '1000:1000\n1000:1000\n');
      assert.equal((await owned.sh('cat /vol/file', { user: 'user' })).stdout, 'by the caller\n');
      await owned.sh('echo mine > /vol/mine', { user: 'user' });
      await owned.sh('echo roots > /vol/roots');
      assert.equal((await owned.sh('stat -c %u /vol/mine /vol/roots')).stdout, '1000\n0\n');
      const stored = async (name: string) => (await engine.client.volumes.statVolumeFile(id, name)).uid;
      assert.deepEqual(
        [await stored('mine'), await stored('roots')],
        [0, 1000],
        'the two have changed places',
      );
      await owned.remove();
      const inert = await withMounts({ type: 'named', name: id, guest: '/vol', options: { noexec: true } });
      assert.match((await inert.sh('cp /bin/busybox /vol/b && /vol/b true')).stderr, /Permission denied/);
      await inert.remove();
      await engine.client.volumes.removeVolume(id);
    });

    test('volumes are found by the names that the caller gives them', async () => {
      const id = `vol/${isolation}:1`;
      await engine.client.volumes.createVolume(id, 16);
      const mounts: Mount[] = [{ type: 'named', name: 'data', guest: '/vol' }];
      const sandbox = await startSandbox(engine, isolation, { mounts }, { volumes: { data: id } });
      await sandbox.sh('echo there > /vol/file');
      await sandbox.remove();
      assert.equal((await engine.client.volumes.listVolumeFiles(id, '')).length > 0, true);
      await engine.client.volumes.removeVolume(id);
      await assert.rejects(startSandbox(engine, isolation, { mounts }), { code: 'volume_not_found' });
    });

    test('a folder of the host appears as of root inside, and what is written belongs to its owner', async () => {
      const sandbox = await withMounts({ type: 'bind', host: join(root, 'shared'), guest: '/host/shared' });
      const { stdout } = await sandbox.sh(
        'cat /host/shared/file; stat -c %u:%g /host/shared/file /host/shared/below',
      );
      assert.equal(stdout, 'of the host\n0:0\n0:0\n');
      await sandbox.sh('echo new > /host/shared/below/new; echo changed > /host/shared/file');
      assert.equal(readFileSync(join(root, 'shared/file'), 'utf8'), 'changed\n');
      const { uid, gid } = statSync(join(root, 'shared/below/new'));
      assert.deepEqual([uid, gid], [HOST_USER, HOST_USER]);
      await sandbox.remove();
    });

    test('a bind can be a file, read-only, and shown as of another owner', async () => {
      const owner = { override_uid: 1000, override_gid: 1000 };
      const sandbox = await withMounts(
        {
          type: 'bind',
          host: join(root, 'shared/file'),
          guest: '/etc/one-file',
          options: { readonly: true },
        },
        { type: 'bind', host: join(root, 'shared/below'), guest: '/below', options: owner },
      );
      assert.equal((await sandbox.sh('cat /etc/one-file')).stdout, 'of the host\n');
      assert.match((await sandbox.sh('echo x > /etc/one-file')).stderr, /Read-only/);
      assert.equal((await sandbox.sh('stat -c %u:%g /below')).stdout, '1000:1000\n');
      await sandbox.sh('echo x > /below/by-user; chmod 777 /below', { user: 'user' });
      assert.equal(statSync(join(root, 'shared/below/by-user')).uid, HOST_USER);
      await sandbox.sh('echo x > /below/by-root');
      await sandbox.sh('echo x > /below/by-nobody', { user: 'nobody' });
      assert.equal(
        (await sandbox.sh('cd /below; stat -c %u by-user by-root by-nobody')).stdout,
        '1000\n0\n65534\n',
      );
      assert.equal(
        statSync(join(root, 'shared/below/by-root')).uid,
        HOST_USER,
        'also for files of root inside',
      );
      await sandbox.remove();
      const below = join(root, 'shared/below');
      const inert = await withMounts({
        type: 'bind',
        host: below,
        guest: '/below',
        options: { noexec: true },
      });
      assert.match((await inert.sh('cp /bin/busybox /below/b && /below/b true')).stderr, /Permission denied/);
      await inert.remove();
    });

    test('a guest adds to a capped bind what its quota allows, across a restart of the engine', async () => {
      const capped: Mount = { type: 'bind', host: join(root, 'shared'), guest: '/capped', quota_mib: 8 };
      await writeFile(join(root, 'shared/large'), Buffer.alloc(20 * MIB));
      await chown(join(root, 'shared/large'), HOST_USER, HOST_USER);
      const sandbox = await withMounts(capped);
      assert.equal((await sandbox.sh('dd if=/dev/zero of=/capped/half bs=1M count=4')).code, 0);
      await engine.restart();
      const { stderr } = await sandbox.sh('dd if=/dev/zero of=/capped/rest bs=1M count=50');
      assert.match(stderr, /quota exceeded/i);
      const added = ['half', 'rest'].map((name) => statSync(join(root, 'shared', name)));
      const bytes = added.reduce((sum, { blocks }) => sum + blocks * 512, 0);
      assert.ok(bytes > 7.5 * MIB && bytes <= 8 * MIB, String(bytes));
      assert.deepEqual(new Set(added.map(({ uid }) => uid)), new Set([HOST_USER]));
      assert.equal(
        (await sandbox.sh('dd if=/dev/zero of=/capped/large bs=1M count=20 conv=notrunc')).code,
        0,
      );
      assert.equal(
        (await sandbox.sh('rm /capped/rest; echo fits > /capped/new && cat /capped/new')).stdout,
        'fits\n',
      );
      await sandbox.remove();
      assert.equal(readFileSync(join(root, 'shared/new'), 'utf8'), 'fits\n');
    });

    test('a folder in the host volume of the caller can be capped, and lets go of the volume', async () => {
      const hostVolume = `capped-${isolation}`;
      await engine.client.volumes.createVolume(hostVolume, 32);
      await engine.client.volumes.makeVolumeFolder(hostVolume, 'one');
      const mounts: Mount[] = [{ type: 'bind', host: 'one', guest: '/one', quota_mib: 4 }];
      const sandbox = await startSandbox(engine, isolation, { mounts }, { hostVolume });
      assert.match(
        (await sandbox.sh('dd if=/dev/zero of=/one/fill bs=1M count=20')).stderr,
        /quota exceeded/i,
      );
      await sandbox.sh('echo mine > /one/mine; chown 1000:1000 /one/mine');
      await sandbox.remove();
      const { size } = await engine.client.volumes.statVolumeFile(hostVolume, 'one/fill');
      assert.ok(size > 3.5 * MIB && size <= 4 * MIB, String(size));
      assert.equal((await engine.client.volumes.statVolumeFile(hostVolume, 'one/mine')).uid, 1000);
      await engine.client.volumes.removeVolume(hostVolume);
    });

    test('a guest leaves no set-user-id program of root in a folder that root owns', async () => {
      await mkdir(join(root, 'shared/roots'), { mode: 0o755 });
      await writeFile(join(root, 'shared/roots/old'), '', { mode: 0o755 });
      await chmod(join(root, 'shared/roots/old'), 0o4755);
      const sandbox = await withMounts({ type: 'bind', host: join(root, 'shared/roots'), guest: '/roots' });
      const { code, stderr } = await sandbox.sh(
        'cd /roots; cp /bin/busybox busybox && chmod 6755 busybox; cat busybox > old; chmod 4755 old; ./busybox true',
      );
      assert.equal(code, 0, stderr);
      for (const name of ['busybox', 'old']) {
        const { mode, uid, size } = statSync(join(root, 'shared/roots', name));
        assert.deepEqual([uid, mode & 0o6000, size > 0], [0, 0, true], name);
      }
      await sandbox.remove();
    });

    test('only what lies in an allowed folder can be bound', async () => {
      for (const host of ['/etc', '/', `${root}-other`, '/proc/self/root']) {
        const error = await refusal({ type: 'bind', host, guest: '/x' });
        assert.equal(error.code, 'invalid_sandbox_config', host);
      }
      const climbing = await withMounts({ type: 'bind', host: `${root}/../..`, guest: '/x' });
      assert.equal((await climbing.sh('ls /x')).stdout, 'shared\n', 'it ends at the root');
      await climbing.remove();
      const missing = await refusal({ type: 'bind', host: join(root, 'nowhere'), guest: '/x' });
      assert.match(missing.message, /does not exist inside its root; create it first/);
      const relative = await refusal({ type: 'bind', host: 'some/where', guest: '/x' });
      assert.match(relative.message, /relative to the host volume, and this sandbox has none/);
    });

    test('a link inside the allowed folder leads to its place inside, never outside', async () => {
      await symlink('/shared/below', join(root, 'shared/inside'));
      await symlink('/etc', join(root, 'shared/outside'));
      const sandbox = await withMounts({ type: 'bind', host: join(root, 'shared/inside'), guest: '/x' });
      await sandbox.sh('echo here > /x/here');
      assert.equal(readFileSync(join(root, 'shared/below/here'), 'utf8'), 'here\n');
      await sandbox.remove();
      const error = await refusal({ type: 'bind', host: join(root, 'shared/outside'), guest: '/x' });
      assert.equal(error.code, 'invalid_sandbox_config');
    });

    test('a relative path lies in the host volume of the caller', async () => {
      const hostVolume = `host-${isolation}`;
      await engine.client.volumes.createVolume(hostVolume, 16);
      await engine.client.volumes.makeVolumeFolder(hostVolume, 'projects/one');
      await engine.client.volumes.writeVolumeFile(hostVolume, 'projects/one/file', oneChunk('kept\n'));
      const mounts: Mount[] = [{ type: 'bind', host: 'projects/one', guest: '/one' }];
      const sandbox = await startSandbox(engine, isolation, { mounts }, { hostVolume });
      assert.equal((await sandbox.sh('cat /one/file; echo new > /one/new')).stdout, 'kept\n');
      await assert.rejects(engine.client.volumes.removeVolume(hostVolume), { code: 'volume_in_use' });
      await sandbox.remove();
      assert.equal((await engine.client.volumes.statVolumeFile(hostVolume, 'projects/one/new')).size, 4);
      const climbing: Mount[] = [{ type: 'bind', host: '../../../etc', guest: '/one' }];
      await assert.rejects(startSandbox(engine, isolation, { mounts: climbing }, { hostVolume }));
      await engine.client.volumes.removeVolume(hostVolume);
    });

    test('patches copy from the host volume of the caller, and let go of it with the sandbox', async () => {
      const hostVolume = `patches-${isolation}`;
      await engine.client.volumes.createVolume(hostVolume, 16);
      await engine.client.volumes.writeVolumeFile(hostVolume, 'file', oneChunk('copied\n'));
      const patches: Patch[] = [{ type: 'copy_file', src: 'file', dst: '/copied' }];
      const sandbox = await startSandbox(engine, isolation, { patches }, { hostVolume });
      assert.equal((await sandbox.sh('cat /copied')).stdout, 'copied\n');
      await sandbox.remove();
      await engine.client.volumes.removeVolume(hostVolume);
    });

    test('a raw disk image is mounted, keeps what is written, and lets go of its device', async () => {
      const image = join(disks, `disk-${isolation}.img`);
      await writeFile(image, '');
      await truncate(image, 16 * MIB);
      await promisify(execFile)('mkfs.ext4', ['-q', '-F', '-E', 'root_owner=1000:1000', image]);
      const disk: Mount = { type: 'disk_image', host: image, guest: '/disk', format: 'raw', fstype: 'ext4' };
      const sandbox = await withMounts(disk);
      assert.equal(
        (await sandbox.sh('echo kept > /disk/file; stat -c %u /disk', { user: 'user' })).stdout,
        '1000\n',
      );
      await sandbox.remove();
      const reader = await withMounts({ ...disk, options: { readonly: true } });
      assert.equal((await reader.sh('cat /disk/file')).stdout, 'kept\n');
      assert.match((await reader.sh('touch /disk/x')).stderr, /Read-only/);
      await reader.remove();
      const owner = { override_uid: 1000, override_gid: 1000 };
      const swapped = await withMounts({ ...disk, options: owner });
      await swapped.sh('echo x > /disk/by-root; chmod 777 /disk');
      await swapped.sh('echo x > /disk/by-user', { user: 'user' });
      assert.equal((await swapped.sh('stat -c %u /disk /disk/by-root /disk/by-user')).stdout, '0\n0\n1000\n');
      await swapped.remove();
      // Another process of this machine that copies its mount namespace just now may hold it a moment longer.
      await waitUntil(() => !loopDevices().some((file) => file.includes(image)), {
        what: 'its device is let go',
      });
      const packed = `${image}.qcow2`;
      await promisify(execFile)('qemu-img', ['convert', '-f', 'raw', '-O', 'qcow2', image, packed]);
      const other: Mount = { ...disk, host: packed, format: 'qcow2' };
      const unpacked = await withMounts({ ...other, options: { readonly: true } });
      assert.equal((await unpacked.sh('cat /disk/file')).stdout, 'kept\n');
      await unpacked.remove();
      const error = await refusal(other);
      assert.equal(error.code, 'invalid_sandbox_config');
      assert.match(error.message, /qemu-img convert -O raw/);
      await rm(image);
    });
  });
}

/** The files behind the loop devices of this host. */
function loopDevices(): string[] {
  return globSync('/sys/block/loop*/loop/backing_file').map((path) => {
    try {
      return readFileSync(path, 'utf8');
    } catch {
      // Let go since it was listed.
      return '';
    }
  });
}

async function* oneChunk(text: string): AsyncGenerator<Uint8Array> {
  yield await Promise.resolve(Buffer.from(text));
}
