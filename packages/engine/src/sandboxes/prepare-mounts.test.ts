import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import type { Mount } from '@svc/contract';
import { makeTestHost } from '../host/test-host.ts';
import type { TestHost } from '../host/test-host.ts';
import type { Slot } from '../network/network.ts';
import { FakeVolumes } from '../volumes/fake-volumes.ts';
import { prepareMounts, releaseStaging, volumesOf, type MountKit } from './prepare-mounts.ts';
import type { SandboxRecord } from './record.ts';

const HANDLE = '0123456789abcdef';

async function makeKit(host: TestHost): Promise<MountKit> {
  for (const name of ['binds', 'images']) mkdirSync(join(host.folder, name));
  const volumes = new FakeVolumes(join(host.folder, 'volumes'));
  await volumes.create('shared', 16);
  return {
    hostCalls: host.calls,
    volumes,
    bindRoots: [join(host.folder, 'binds')],
    diskImageRoots: [join(host.folder, 'images')],
    stagingFolder: join(host.folder, 'staging'),
  };
}

async function makeSlot(host: TestHost): Promise<Slot> {
  const [userNamespace, networkNamespace] = [join(host.folder, 'user'), join(host.folder, 'net')];
  const idBase = 1_100_000_000;
  await host.calls.createNamespaces({
    userPath: userNamespace,
    networkPath: networkNamespace,
    idBase,
    link: null,
  });
  return { key: 'mounts', userNamespace, networkNamespace, idBase, link: null };
}

/** Of a record, mounts look at nothing but these. */
function recordWith(mounts: readonly Mount[], volumes: Record<string, string> = {}): SandboxRecord {
  const spec = { image: { type: 'oci', reference: 'x' }, mounts };
  return { handle: HANDLE, spec, volumes, hostVolume: 'shared' } as unknown as SandboxRecord;
}

const soon = () => AbortSignal.timeout(30_000);

test('a disk image is mounted from a folder that the operator set aside, and from nowhere a sandbox can write', async () => {
  await using host = await makeTestHost();
  const kit = await makeKit(host);
  const slot = await makeSlot(host);
  const prepare = async (path: string, image = kit) =>
    await prepareMounts(
      image,
      recordWith([{ type: 'disk_image', host: path, guest: '/disk', format: 'raw', fstype: 'ext2' }]),
      slot,
      soon(),
    );
  for (const folder of ['binds', 'images']) {
    const image = join(host.folder, folder, 'disk.img');
    writeFileSync(image, Buffer.alloc(1024 * 1024));
    await host.run('mkfs.ext2', '-q', '-F', image);
  }
  const inImages = join(host.folder, 'images/disk.img');
  const refused = { code: 'invalid_sandbox_config', message: /--disk-image-root/ };
  await assert.rejects(prepare(join(host.folder, 'binds/disk.img')), refused);
  await assert.rejects(prepare('disk.img'), refused, 'relative to the host volume');
  await assert.rejects(prepare(inImages, { ...kit, diskImageRoots: [] }), refused);
  await assert.rejects(prepare(join(host.folder, 'images/../binds/disk.img')), {
    code: 'invalid_sandbox_config',
  });
  assert.deepEqual(
    (await host.mounts()).filter((path) => path.includes('/staging/')),
    [],
  );

  const [mount] = await prepare(inImages);
  assert.match(await host.run('ls', mount?.source ?? ''), /lost\+found/);
  await releaseStaging(kit, HANDLE);
  assert.deepEqual(
    (await host.mounts()).filter((path) => path.includes('/staging/')),
    [],
  );
});

test('a file of the host is bound as a file, a folder as a folder', async () => {
  await using host = await makeTestHost();
  const kit = await makeKit(host);
  const slot = await makeSlot(host);
  mkdirSync(join(host.folder, 'binds/folder'));
  writeFileSync(join(host.folder, 'binds/file'), 'content');
  const binds = ['file', 'folder'].map((name): Mount => {
    return { type: 'bind', host: join(host.folder, 'binds', name), guest: `/${name}` };
  });
  const [file, folder] = await prepareMounts(kit, recordWith(binds), slot, soon());
  assert.equal(await host.run('cat', file?.source ?? ''), 'content');
  assert.equal(await host.run('ls', folder?.source ?? ''), '');
  await releaseStaging(kit, HANDLE);
  assert.equal(await host.run('cat', join(host.folder, 'binds/file')), 'content');
});

test('a volume may have the name of something that every object has', () => {
  const mounts: Mount[] = ['constructor', '__proto__', 'data'].map((name) => ({
    type: 'named',
    name,
    guest: `/${name}`,
  }));
  assert.deepEqual(volumesOf(recordWith(mounts, { data: 'org/data' })), [
    'constructor',
    '__proto__',
    'org/data',
  ]);
});
