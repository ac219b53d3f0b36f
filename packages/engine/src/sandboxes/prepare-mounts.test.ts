import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import type { Mount } from '@svc/contract';
import type { HostCalls } from '../host/host-calls.ts';
import { makeTestHost } from '../testing/test-host.ts';
import type { TestHost } from '../testing/test-host.ts';
import type { Slot } from '../network/network.ts';
import { FakeVolumes } from '../testing/fake-volumes.ts';
import { prepareMounts, releaseStaging, volumesOf, type MountKit } from './prepare-mounts.ts';
import type { EngineRecord } from './record.ts';

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
    rawCopyFolder: join(host.folder, 'raw-copies'),
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
function recordWith(mounts: readonly Mount[], volumes: Record<string, string> = {}): EngineRecord {
  const spec = { image: { type: 'oci', reference: 'x' }, mounts };
  return {
    handle: HANDLE,
    spec,
    volumes,
    hostVolume: 'shared',
    hostFolder: null,
  } as unknown as EngineRecord;
}

const soon = () => AbortSignal.timeout(100_000);

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

test('a caller with a folder of its own reaches nothing else of the roots', async () => {
  await using host = await makeTestHost();
  const kit = await makeKit(host);
  const slot = await makeSlot(host);
  const at = (...names: string[]) => join(host.folder, ...names);
  for (const root of ['binds', 'images']) {
    for (const owner of ['mine', 'theirs']) {
      mkdirSync(at(root, owner));
      writeFileSync(at(root, owner, 'disk.img'), Buffer.alloc(1024 * 1024));
      await host.run('mkfs.ext4', '-q', '-F', '-O', '^has_journal', at(root, owner, 'disk.img'));
    }
    symlinkSync('../theirs', at(root, 'mine/link'));
    symlinkSync(at(root, 'theirs'), at(root, 'mine/absolute'));
    symlinkSync('../theirs/disk.img', at(root, 'mine/image'));
  }
  const prepare = (mount: Mount) =>
    prepareMounts(kit, { ...recordWith([mount]), hostFolder: 'mine' }, slot, soon());
  const bind = (path: string): Mount => ({ type: 'bind', host: path, guest: '/m' });
  const image = (path: string): Mount => ({ type: 'disk_image', host: path, guest: '/m', format: 'raw' });
  const hostile = [
    ...['binds/theirs', 'binds', 'binds/mine/../theirs', 'binds/mine/link', 'binds/mine/absolute'].map(
      (path) => bind(at(path)),
    ),
    ...['images/theirs/disk.img', 'images/mine/../theirs/disk.img', 'images/mine/image'].map((path) =>
      image(at(path)),
    ),
    ...['../theirs/disk.img', 'image', 'link/disk.img', 'absolute/disk.img'].map(image),
  ];
  for (const mount of hostile) {
    await assert.rejects(prepare(mount), { code: 'invalid_sandbox_config' }, JSON.stringify(mount));
    await releaseStaging(kit, HANDLE);
  }
  for (const mount of [bind(at('binds/mine')), image('disk.img'), image(at('images/mine/disk.img'))]) {
    const [prepared] = await prepare(mount);
    assert.match(await host.run('ls', prepared?.source ?? ''), /disk.img|lost\+found/);
    await releaseStaging(kit, HANDLE);
  }
});

test('an image without a file system, an unclean one and one in use are refused by name', async () => {
  await using host = await makeTestHost();
  const kit = await makeKit(host);
  const slot = await makeSlot(host);
  const at = (name: string) => join(host.folder, 'images', name);
  const prepare = (name: string, handle: string) => {
    const mount: Mount = { type: 'disk_image', host: at(name), guest: '/disk', format: 'raw' };
    return prepareMounts(kit, { ...recordWith([mount]), handle }, slot, soon());
  };
  for (const name of ['empty', 'unclean', 'used']) writeFileSync(at(name), Buffer.alloc(1024 * 1024));
  for (const name of ['unclean', 'used'])
    await host.run('mkfs.ext4', '-q', '-F', '-O', '^has_journal', at(name));
  await host.run('debugfs', '-w', '-R', 'ssv state 2', at('unclean'));
  await prepare('used', 'a'.repeat(16));
  for (const [name, code, message] of [
    ['empty', 'invalid_sandbox_config', /empty holds no ext4/],
    ['unclean', 'invalid_sandbox_config', /unclean was not unmounted cleanly; check it with `e2fsck -p`/],
    ['used', 'unavailable', /used is mounted by another sandbox/],
  ] as const) {
    await assert.rejects(prepare(name, HANDLE), { code, message });
    await releaseStaging(kit, HANDLE);
  }
  await releaseStaging(kit, 'a'.repeat(16));
});

test('an image that the last sandbox has not quite let go of is waited for', async () => {
  await using host = await makeTestHost();
  const kit = await makeKit(host);
  const slot = await makeSlot(host);
  const image = join(host.folder, 'images/disk.img');
  writeFileSync(image, Buffer.alloc(1024 * 1024));
  await host.run('mkfs.ext4', '-q', '-F', '-O', '^has_journal', image);
  const record = recordWith([{ type: 'disk_image', host: image, guest: '/disk', format: 'raw' }]);
  const [mount] = await prepareMounts(kit, record, slot, soon());
  const holder = spawn('sleep', ['60'], { cwd: mount?.source ?? '', stdio: 'ignore' });
  await once(holder, 'spawn');
  await releaseStaging(kit, HANDLE);
  const refusals: unknown[] = [];
  const mountImage: HostCalls['mountImage'] = (request) =>
    host.calls.mountImage(request).catch((error: unknown) => {
      refusals.push(error);
      holder.kill('SIGKILL');
      throw error;
    });
  const hostCalls = Object.create(host.calls, {
    bind: { value: (request: Parameters<HostCalls['bind']>[0]) => host.calls.bind(request) },
    mountImage: { value: mountImage },
  }) as HostCalls;
  await prepareMounts({ ...kit, hostCalls }, record, slot, soon());
  assert.ok(refusals.length > 0, 'the mount was never refused, so the retry was not tested');
  await releaseStaging(kit, HANDLE);
});

interface Images {
  readonly folder: string;
  prepare(name: string, format: 'qcow2' | 'vmdk', readonly?: boolean): ReturnType<typeof prepareMounts>;
  qemuImg(...args: readonly string[]): Promise<string>;
}

/** A folder of images with a raw one in it, which holds the file `inside`. */
async function makeImages(host: TestHost, kit: MountKit): Promise<Images> {
  const folder = join(host.folder, 'images');
  const slot = await makeSlot(host);
  mkdirSync(join(host.folder, 'content'));
  writeFileSync(join(host.folder, 'content/inside'), 'converted\n');
  await host.run('truncate', '-s', '8M', join(folder, 'raw'));
  await host.run('mkfs.ext4', '-q', '-F', '-d', join(host.folder, 'content'), join(folder, 'raw'));
  return {
    folder,
    prepare: (name, format, readonly = true) => {
      const image = join(folder, name);
      const mount: Mount = { type: 'disk_image', host: image, guest: '/disk', format, options: { readonly } };
      return prepareMounts(kit, recordWith([mount]), slot, soon());
    },
    qemuImg: (...args) => host.run('sh', '-c', 'cd "$1"; shift; exec qemu-img "$@"', 'sh', folder, ...args),
  };
}

test('qcow2 and vmdk images are mounted read-only, from a copy that goes with the mount', async () => {
  await using host = await makeTestHost();
  const kit = await makeKit(host);
  const images = await makeImages(host, kit);
  for (const [format, options] of [
    ['qcow2', ['-c']],
    ['vmdk', []],
    ['vmdk', ['-o', 'subformat=streamOptimized']],
  ] as const) {
    await images.qemuImg('convert', '-f', 'raw', '-O', format, ...options, 'raw', 'image');
    const [mount] = await images.prepare('image', format);
    assert.equal(await host.run('cat', join(mount?.source ?? '', 'inside')), 'converted\n');
    assert.deepEqual(readdirSync(kit.rawCopyFolder), [], 'the copy has no name');
    await releaseStaging(kit, HANDLE);
    await assert.rejects(images.prepare('image', format, false), {
      code: 'invalid_sandbox_config',
      message: /cannot be written to; set readonly, or convert it once with `qemu-img convert -O raw/,
    });
  }
});

test('an image that needs other files, is too large or is none is refused, and leaves no copy', async () => {
  await using host = await makeTestHost();
  const kit = await makeKit(host);
  const images = await makeImages(host, kit);
  await images.qemuImg('create', '-q', '-f', 'qcow2', '-b', 'raw', '-F', 'raw', 'backed');
  await images.qemuImg('create', '-q', '-f', 'qcow2', '-u', '-b', '/etc/passwd', '-F', 'raw', 'secret', '1M');
  await images.qemuImg('create', '-q', '-f', 'qcow2', '-o', 'data_file=data,data_file_raw=on', 'split', '1M');
  await images.qemuImg('create', '-q', '-f', 'qcow2', 'large', '65G');
  await images.qemuImg('convert', '-f', 'raw', '-O', 'vmdk', '-o', 'subformat=monolithicFlat', 'raw', 'flat');
  const cases = [
    ['backed', 'qcow2', /needs other files/],
    ['secret', 'qcow2', /needs other files/],
    ['split', 'qcow2', /needs other files/],
    ['flat', 'vmdk', /needs other files/],
    ['large', 'qcow2', /larger than 64 GiB/],
    ['raw', 'qcow2', /of another format/],
    ['raw', 'vmdk', /of another format/],
  ] as const;
  for (const [name, format, message] of cases) {
    await assert.rejects(images.prepare(name, format), { code: 'invalid_sandbox_config', message }, name);
    await releaseStaging(kit, HANDLE);
  }
  mkdirSync(join(kit.rawCopyFolder, `${HANDLE}-0`), { recursive: true });
  await releaseStaging(kit, HANDLE);
  assert.deepEqual(readdirSync(kit.rawCopyFolder), [], 'also what an engine left that was killed meanwhile');
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
