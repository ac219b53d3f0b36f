import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { statSync } from 'node:fs';
import { mkdir, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { claim, type Claim } from '../claim.ts';
import type { Ground, Json } from '../ground.ts';
import { hostVolume, makeFolder } from './mounts.ts';

const run = promisify(execFile);
const DISK_BYTES = 16 * 1024 * 1024;

/** What the operator shares with the organization below a root: the folder with its id. */
async function sharedFolder(ground: Ground, root: 'shared' | 'disks'): Promise<string> {
  const { body } = await ground.rest('GET', '/me/org');
  const folder = join(ground.folder, root, body.id);
  await mkdir(folder, { recursive: true });
  return folder;
}

/** A sandbox that mounts a disk image of each format. */
async function diskBox(ground: Ground): Promise<Json> {
  return await ground.shared('disks', async () => {
    const folder = await sharedFolder(ground, 'disks');
    const raw = join(folder, 'data.raw');
    await writeFile(raw, '');
    await truncate(raw, DISK_BYTES);
    await run('mkfs.ext4', ['-q', '-F', raw]);
    for (const format of ['qcow2', 'vmdk'])
      await run('qemu-img', ['convert', '-f', 'raw', '-O', format, raw, join(folder, `data.${format}`)]);
    const disk = { type: 'disk_image', fstype: 'ext4' };
    const fixed = { ...disk, options: { readonly: true } };
    const mounts = [
      { ...disk, host: 'data.raw', format: 'raw', guest: '/raw' },
      { ...fixed, host: 'data.qcow2', format: 'qcow2', guest: '/qcow2' },
      { ...fixed, host: 'data.vmdk', format: 'vmdk', guest: '/vmdk' },
    ];
    return await ground.running({ mounts });
  });
}

export const diskImageClaims: readonly Claim[] = [
  claim(
    'spec.mounts.type=disk_image',
    'A disk image of the folder that the operator set aside for the organization',
    'what is written inside to a raw one is there after a restart of the sandbox',
    async (ground) => {
      const box = await diskBox(ground);
      assert.equal(box.spec.mounts[0].type, 'DiskImage');
      await ground.seen(box, 'echo kept > /raw/file; sync');
      await ground.stop(box.id);
      await ground.rest('POST', `/sandboxes/${box.id}/start?wait_for=running&wait_timeout=90`);
      assert.equal(await ground.seen(box, 'cat /raw/file'), 'kept');
    },
    { covers: ['spec.mounts.type=DiskImage'] },
  ),
  claim(
    'spec.mounts.format',
    'Its format; `raw` can be written to, the others are read-only',
    'one of each is mounted; writing to another than raw is refused by field',
    async (ground) => {
      const box = await diskBox(ground);
      assert.deepEqual(
        box.spec.mounts.map(({ format }: Json) => format),
        ['Raw', 'Qcow2', 'Vmdk'],
      );
      assert.equal(
        await ground.seen(box, 'ls -d /raw/lost+found /qcow2/lost+found /vmdk/lost+found | wc -l'),
        '3',
      );
      const mounts = [{ type: 'disk_image', host: 'data.qcow2', format: 'qcow2', guest: '/x' }];
      assert.match((await ground.refusal({ mounts })).message, /qemu-img convert -O raw/);
    },
    {
      covers: ['raw', 'qcow2', 'vmdk', 'Raw', 'Qcow2', 'Vmdk'].map(
        (format) => `spec.mounts.format=${format}`,
      ),
    },
  ),
  claim(
    'spec.mounts.fstype',
    'The file system in it',
    'the mount table inside; one that cannot be mounted is refused',
    async (ground) => {
      const box = await diskBox(ground);
      assert.equal(box.spec.mounts[0].fstype, 'ext4');
      const mounts = [{ type: 'disk_image', host: 'data.raw', format: 'raw', fstype: 'ntfs', guest: '/x' }];
      assert.match((await ground.refusal({ mounts })).message, /fstype|ntfs/);
    },
    { default: 'ext4' },
  ),
];

/** A sandbox that changed the mode and owner of a file in three binds of the host. */
async function statBox(ground: Ground): Promise<{ readonly box: Json; readonly folder: string }> {
  return await ground.shared('stat', async () => {
    const folder = await sharedFolder(ground, 'shared');
    const binds = [
      { guest: '/usual' },
      { guest: '/relaxed', stat_virtualization: 'relaxed' },
      { guest: '/off', stat_virtualization: 'off' },
      { guest: '/mirror', host_permissions: 'mirror' },
    ];
    for (const { guest } of binds) {
      await mkdir(join(folder, guest));
      await writeFile(join(folder, guest, 'file'), 'x', { mode: 0o640 });
    }
    const mounts = binds.map((bind) => ({ type: 'bind', host: join(folder, bind.guest), ...bind }));
    const box = await ground.running({ mounts });
    await ground.seen(
      box,
      'for place in usual relaxed mirror; do chmod 751 /$place/file; chown 1000:7 /$place/file; done; chmod 751 /off/file',
    );
    return { box, folder };
  });
}

const SHOWN = (place: string) => `stat -c "%a %u:%g" /${place}/file`;

export const statClaims: readonly Claim[] = [
  claim(
    'spec.mounts.stat_virtualization',
    'Where owners and modes that a guest sets on a folder of the host are kept',
    '`strict` is what the answer shows unless told otherwise: inside they are as set, on the host as before',
    async (ground) => {
      const { box, folder } = await statBox(ground);
      assert.equal(box.spec.mounts[0].stat_virtualization, 'strict');
      assert.equal(await ground.seen(box, SHOWN('usual')), '751 1000:7');
      const { mode, uid } = statSync(join(folder, 'usual/file'));
      assert.deepEqual([mode & 0o777, uid], [0o640, 0]);
    },
    { default: '`strict`', covers: ['spec.mounts.stat_virtualization=strict'] },
  ),
  claim(
    'spec.mounts.stat_virtualization=relaxed',
    'The same, also where the file system has no place for them',
    'inside they are as set, on the host as before',
    async (ground) => {
      const { box, folder } = await statBox(ground);
      assert.equal(await ground.seen(box, SHOWN('relaxed')), '751 1000:7');
      assert.equal(statSync(join(folder, 'relaxed/file')).mode & 0o777, 0o640);
    },
  ),
  claim(
    'spec.mounts.stat_virtualization=off',
    'Owners and modes are those of the host',
    'a mode that was set inside is there on the host',
    async (ground) => {
      const { folder } = await statBox(ground);
      assert.equal(statSync(join(folder, 'off/file')).mode & 0o777, 0o751);
    },
  ),
  claim(
    'spec.mounts.host_permissions',
    'Whether the mode on the host follows what a guest sets',
    '`private` is what the answer shows unless told otherwise: the mode on the host stays',
    async (ground) => {
      const { box, folder } = await statBox(ground);
      assert.equal(box.spec.mounts[0].host_permissions, 'private');
      assert.equal(statSync(join(folder, 'usual/file')).mode & 0o777, 0o640);
    },
    { default: '`private`', covers: ['spec.mounts.host_permissions=private'] },
  ),
  claim(
    'spec.mounts.host_permissions=mirror',
    'The read, write and execute bits do; not with `stat_virtualization` off',
    'the mode on the host is the one that was set inside; both together are refused by field',
    async (ground) => {
      const { folder } = await statBox(ground);
      assert.equal(statSync(join(folder, 'mirror/file')).mode & 0o777, 0o751);
      const mounts = [
        { type: 'bind', host: 'x', guest: '/x', host_permissions: 'mirror', stat_virtualization: 'off' },
      ];
      assert.equal((await ground.refusal({ mounts })).details.field, 'mounts[0].host_permissions');
    },
  ),
  claim(
    'rule.tmpfs-owner',
    'A tmpfs with `override_uid` and `override_gid` belongs to that user',
    '`stat` inside',
    async (ground) => {
      const options = { override_uid: 1000, override_gid: 1000 };
      const box = await ground.running({ mounts: [{ type: 'tmpfs', guest: '/own', options }] });
      assert.equal(await ground.seen(box, 'stat -c %u:%g /own'), '1000:1000');
      await ground.remove(box.id);
    },
  ),
  claim(
    'rule.mount-flags',
    '`nosuid` and `nodev` hold on every mount; `false` is taken and answers show true',
    'the answer to a create that sends false',
    async (ground) => {
      await makeFolder(ground, await hostVolume(ground), 'flags');
      const options = { nosuid: false, nodev: false };
      const box = await ground.running({ mounts: [{ type: 'bind', host: 'flags', guest: '/f', options }] });
      assert.deepEqual([box.spec.mounts[0].options.nosuid, box.spec.mounts[0].options.nodev], [true, true]);
      await ground.remove(box.id);
    },
  ),
];
