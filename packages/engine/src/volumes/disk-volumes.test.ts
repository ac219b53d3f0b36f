import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { watch } from 'node:fs';
import { mkdir, readdir, readFile, rename, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { waitUntil } from '@svc/contract/testing';
import { PlatformError } from '@svc/contract/errors';
import type { HostCalls } from '../host/host-calls.ts';
import { countErrors, devicesByImage } from '../space/disk-limit.ts';
import { makeRealHost } from '../testing/volumes-host.ts';
import type { RealHost } from '../testing/volumes-host.ts';
import type { DiskVolumes } from './disk-volumes.ts';
import { content, filled, readText, rejectsWith, soon, volumesSuite } from './volumes.suite.ts';

const MIB = 1024 * 1024;

volumesSuite('disk', makeRealHost);

async function openVolume(
  host: RealHost,
  options: Parameters<RealHost['open']>[0] = {},
): Promise<DiskVolumes> {
  const volumes = host.open(options);
  await volumes.recover(new Map());
  await volumes.create('vol', 32, soon());
  return volumes;
}

/** The one folder under the volumes' folder. */
async function folderOf(host: RealHost): Promise<string> {
  const names = await readdir(host.folder);
  assert.equal(names.length, 1);
  return join(host.folder, names[0] ?? '');
}

/** Children of this process that serve files. */
async function fileServers(host: RealHost): Promise<readonly number[]> {
  const all = await host.run('ps', '--ppid', String(process.pid), '-o', 'pid=,args=').catch(() => '');
  return all
    .split('\n')
    .flatMap((line) => (line.includes(' serve-files ') ? [Number.parseInt(line, 10)] : []));
}

test('a sandbox that fills its volume gets ENOSPC, and the image grows no further', async () => {
  await using host = await makeRealHost();
  const volumes = await openVolume(host);
  const root = await volumes.attach('vol', 'sandbox', soon());
  await assert.rejects(host.run('dd', 'if=/dev/zero', `of=${root}/fill`, 'bs=1M'), /No space left on device/);
  const { size } = await stat(join(root, 'fill'));
  assert.ok(size >= 32 * MIB && size < 37 * MIB, `${size}`);
  assert.deepEqual(await volumes.usage('vol'), { usedBytes: 32 * MIB, capacityBytes: 32 * MIB });
  await rejectsWith(volumes.files('vol').write('more', filled('x', MIB), soon()), 'disk_full');
  const image = await stat(join(await folderOf(host), 'image.ext4'));
  assert.ok(image.blocks * 512 < 45 * MIB);
  await volumes.detach('vol', 'sandbox');
});

test('files get the capacity that was promised, and little more', async () => {
  await using host = await makeRealHost();
  const volumes = host.open();
  await volumes.recover(new Map());
  for (const capacityMib of [1, 8, 100, 600, 2048, 20_480]) {
    await volumes.create('vol', capacityMib, soon());
    const root = await volumes.attach('vol', 'sandbox', soon());
    const atMost = Math.ceil(capacityMib * 1.01) + 4;
    await host.run('fallocate', '-l', `${capacityMib}M`, join(root, 'fits'));
    await rm(join(root, 'fits'));
    await assert.rejects(
      host.run('fallocate', '-l', `${atMost}M`, join(root, 'not')),
      /No space/,
      `${capacityMib}`,
    );
    await volumes.detach('vol', 'sandbox');
    await volumes.remove('vol');
  }
});

test('a fresh volume costs the host next to nothing and is empty, owned by root and 0755', async () => {
  await using host = await makeRealHost();
  const volumes = host.open();
  await volumes.recover(new Map());
  await volumes.create('large', 100 * 1024, soon());
  const root = await volumes.attach('large', 'sandbox', soon());
  const image = await stat(join(await folderOf(host), 'image.ext4'));
  assert.ok(image.blocks * 512 < 16 * MIB, `${image.blocks * 512}`);
  assert.deepEqual(await readdir(root), []);
  const { mode, uid, gid } = await stat(root);
  assert.deepEqual([mode & 0o7777, uid, gid], [0o755, 0, 0]);
  const [total = 0] = (await host.run('df', '--output=size', '-B1M', root)).split('\n').slice(1).map(Number);
  assert.ok(total >= 100 * 1024 && total < 101 * 1024, `${total}`);
  await volumes.detach('large', 'sandbox');
});

test('the last detach unmounts after a while and frees the loop device; the data comes back', async () => {
  await using host = await makeRealHost();
  const volumes = await openVolume(host, { unmountGraceMs: 20 });
  const root = await volumes.attach('vol', 'one', soon());
  await volumes.attach('vol', 'two', soon());
  await writeFile(join(root, 'file'), 'from a sandbox');
  await volumes.detach('vol', 'one');
  assert.equal((await host.inUse()).length, 2);
  await volumes.detach('vol', 'two');
  await waitUntil(async () => (await host.inUse()).length === 0);
  assert.deepEqual(await host.inUse(), []);
  assert.ok((await volumes.usage('vol')).usedBytes < MIB);
  await volumes.attach('vol', 'three', soon());
  assert.equal(await readFile(join(root, 'file'), 'utf8'), 'from a sandbox');
  await volumes.detach('vol', 'three');
});

test('removed files of a volume free space on the host', async () => {
  await using host = await makeRealHost();
  const volumes = await openVolume(host);
  // Keeps it mounted meanwhile.
  await volumes.attach('vol', 'sandbox', soon());
  await volumes.files('vol').write('file', filled('x', 20 * MIB), soon());
  const image = join(await folderOf(host), 'image.ext4');
  assert.ok((await stat(image)).blocks * 512 > 20 * MIB);
  await volumes.files('vol').remove('file', { recursive: false }, soon());
  await volumes.detach('vol', 'sandbox');
  await volumes.close();
  assert.ok((await stat(image)).blocks * 512 < 10 * MIB);
});

test('the file server starts on demand, ends when idle, and is started again when it was killed', async () => {
  await using host = await makeRealHost();
  const volumes = await openVolume(host, { fileServerIdleMs: 20, unmountGraceMs: 20 });
  const files = volumes.files('vol');
  assert.deepEqual(await fileServers(host), []);
  await files.write('file', content('one'), soon());
  await waitUntil(async () => (await fileServers(host)).length === 0);
  await waitUntil(async () => (await host.inUse()).length === 0);
  assert.deepEqual([await fileServers(host), await host.inUse()], [[], []]);
  const begun = Promise.withResolvers<void>();
  async function* stuck(): AsyncGenerator<Uint8Array> {
    yield Buffer.alloc(100_000);
    begun.resolve();
    await new Promise(() => undefined);
  }
  const writing = rejectsWith(files.write('file', stuck(), soon()), 'unavailable');
  await begun.promise;
  const [server] = await fileServers(host);
  // SAFETY: 0 would be everything that runs this test.
  assert.ok(server);
  process.kill(server, 'SIGKILL');
  await writing;
  assert.equal(await readText(files, 'file'), 'one');
  assert.deepEqual((await files.list('', soon())).length, 1);
});

test('a reader that stops, or whose signal aborts, lets the file server go', async () => {
  await using host = await makeRealHost();
  const volumes = await openVolume(host, { fileServerIdleMs: 20, unmountGraceMs: 20 });
  const files = volumes.files('vol');
  await files.write('file', filled('x', 10 * MIB), soon());
  for await (const chunk of await files.read('file', soon())) {
    assert.ok(chunk.length > 0);
    break;
  }
  const controller = new AbortController();
  await files.read('file', controller.signal);
  controller.abort();
  await waitUntil(async () => (await host.inUse()).length === 0);
  assert.deepEqual(await host.inUse(), []);
});

test('a sandbox that swaps a folder for a link while files are written cannot lead them outside', async () => {
  await using host = await makeRealHost();
  const volumes = await openVolume(host);
  const files = volumes.files('vol');
  const root = await volumes.attach('vol', 'sandbox', soon());
  const outside = join(host.secret, '..', 'outside');
  await mkdir(outside);
  await mkdir(join(root, 'real'));
  const swapper = spawn(
    'sh',
    [
      '-c',
      'while :; do ln -sfn "$1" next; mv -T next door; rm -f door; mkdir next; mv -T next door; rm -rf door; done',
      'sh',
      outside,
    ],
    { cwd: root, stdio: 'ignore' },
  );
  const seen = new Set<string>();
  const deadline = performance.now() + 60_000;
  for (let attempt = 0; attempt < 50 || (seen.size < 2 && performance.now() < deadline); attempt++) {
    // Whether it succeeds depends on the race; where it ends up must not.
    const outcomes = await Promise.allSettled([
      files.write('door/victim', content('escaped'), soon()),
      files.mkdir('door/sub', soon()),
      files.copy('real', 'door/copied', soon()),
      files.remove('door/victim', { recursive: true }, soon()),
    ]);
    for (const outcome of outcomes) seen.add(outcome.status);
  }
  const ended = once(swapper, 'exit');
  swapper.kill('SIGKILL');
  await ended;
  // Both must have happened, or there was no race.
  assert.deepEqual([...seen].sort(), ['fulfilled', 'rejected']);
  assert.deepEqual(await readdir(outside), []);
  await volumes.detach('vol', 'sandbox');
});

test('special files of a sandbox in a volume do not break file operations', async () => {
  await using host = await makeRealHost();
  const volumes = await openVolume(host);
  const files = volumes.files('vol');
  const root = await volumes.attach('vol', 'sandbox', soon());
  await host.run('mkfifo', join(root, 'fifo'));
  await host.run('mknod', join(root, 'device'), 'c', '1', '5');
  await symlink('loop', join(root, 'loop'));
  await writeFile(Buffer.concat([Buffer.from(`${root}/`), Buffer.from([0xff, 0xfe])]), 'no utf-8');
  await rejectsWith(files.read('fifo', soon()), 'invalid_volume_path');
  await assert.rejects(files.read('device', soon()), PlatformError);
  await rejectsWith(files.read('loop', soon()), 'invalid_volume_path');
  await rejectsWith(files.copy('fifo', 'copy', soon()), 'invalid_request');
  const kinds = (await files.list('', soon())).map((entry) => entry.kind).sort();
  assert.deepEqual(kinds, ['file', 'other', 'other', 'symlink']);
  await files.write('fifo', content('now a file'), soon());
  assert.equal(await readText(files, 'fifo'), 'now a file');
  await volumes.detach('vol', 'sandbox');
});

test('replacing a file keeps its owner and permissions, without lending rights', async () => {
  await using host = await makeRealHost();
  const volumes = await openVolume(host);
  const files = volumes.files('vol');
  const root = await volumes.attach('vol', 'sandbox', soon());
  await writeFile(join(root, 'script'), 'old');
  await host.run('chown', '1000:1001', join(root, 'script'));
  await host.run('chmod', '4750', join(root, 'script'));
  await files.write('script', content('new'), soon());
  await files.copy('script', 'copy', soon());
  for (const name of ['script', 'copy']) {
    const { mode, uid, gid } = await stat(join(root, name));
    assert.deepEqual([mode & 0o7777, uid, gid], [0o750, 1000, 1001]);
  }
  await volumes.detach('vol', 'sandbox');
});

test('a write cut off by a crash is invisible and removed by the next engine', async () => {
  await using host = await makeRealHost();
  const volumes = await openVolume(host);
  const files = volumes.files('vol');
  await files.write('folder/file', content('old'), soon());
  const begun = Promise.withResolvers<void>();
  async function* stuck(): AsyncGenerator<Uint8Array> {
    yield Buffer.alloc(5 * MIB);
    begun.resolve();
    await new Promise(() => undefined);
  }
  const controller = new AbortController();
  const writing = files.write('folder/file', stuck(), controller.signal);
  writing.catch(() => undefined);
  await begun.promise;
  const root = await volumes.attach('vol', 'sandbox', soon());
  await waitUntil(async () => (await readdir(join(root, 'folder'))).length === 2);
  assert.deepEqual(
    (await files.list('folder', soon())).map((entry) => entry.path),
    ['folder/file'],
  );
  // As after kill -9: the file server is gone, the note and the temporary file are there.
  const notes = join(await folderOf(host), 'writing');
  assert.equal((await readdir(notes)).length, 1);
  await host.run('cp', '-a', notes, `${notes}.kept`);
  await host.run('cp', '-al', join(root, 'folder'), join(root, 'kept'));
  controller.abort();
  await assert.rejects(writing);
  await volumes.close();
  await host.run('cp', '-aT', `${notes}.kept`, notes);
  await host.run('rm', '-r', join(root, 'folder'), `${notes}.kept`);
  await rename(join(root, 'kept'), join(root, 'folder'));
  assert.equal((await readdir(join(root, 'folder'))).length, 2);
  const next = host.open();
  await next.recover(new Map([['vol', ['sandbox']]]));
  assert.equal(await readText(next.files('vol'), 'folder/file'), 'old');
  assert.deepEqual(await readdir(join(root, 'folder')), ['file']);
  assert.deepEqual(await readdir(notes), []);
});

test('recovery keeps the mounts that are needed, removes the others and what is half made', async () => {
  await using host = await makeRealHost();
  const volumes = await openVolume(host);
  await volumes.create('idle', 8, soon());
  const root = await volumes.attach('vol', 'sandbox', soon());
  await volumes.attach('idle', 'forgotten', soon());
  await writeFile(join(root, 'open'), 'x');
  const halfMade = join(host.folder, 'volume-half');
  await mkdir(join(halfMade, 'mount'), { recursive: true });
  await writeFile(join(halfMade, 'image.ext4'), 'x');
  const damaged = join(host.folder, 'volume-damaged');
  await mkdir(damaged);
  await writeFile(join(damaged, 'volume.json'), '{"id":');
  const device = async () => (await stat(root)).dev;
  const before = await device();
  const next = host.open();
  const holders = new Map([['vol', ['sandbox']]]);
  await next.recover(holders);
  assert.equal(await device(), before);
  assert.deepEqual(
    (await host.inUse()).filter((path) => path.endsWith('/mount')),
    [root],
  );
  const folders = await readdir(host.folder);
  assert.ok(!folders.includes('volume-half') && folders.includes('volume-damaged'));
  await host.hostCalls.unmount(root);
  await next.recover(holders);
  await next.attach('vol', 'sandbox', soon());
  assert.equal(await readFile(join(root, 'open'), 'utf8'), 'x');
});

test('a file system with errors is repaired before it is mounted', async () => {
  await using host = await makeRealHost();
  const volumes = await openVolume(host);
  await volumes.files('vol').write('file', content('kept'), soon());
  await volumes.close();
  await waitUntil(async () => (await host.inUse()).length === 0);
  await host.run('debugfs', '-w', '-R', 'set_super_value state 2', join(await folderOf(host), 'image.ext4'));
  assert.equal(await readText(volumes.files('vol'), 'file'), 'kept');
});

test('a volume is made only while the host has space to spare', async () => {
  await using host = await makeRealHost();
  const volumes = host.open({ space: host.space(Number.MAX_SAFE_INTEGER) });
  await volumes.recover(new Map());
  await rejectsWith(volumes.create('vol', 8, soon()), 'insufficient_storage');
  assert.deepEqual(await readdir(host.folder), []);
});

test('creating that is aborted leaves nothing behind', async () => {
  await using host = await makeRealHost();
  const volumes = host.open();
  await volumes.recover(new Map());
  await rejectsWith(volumes.create('vol', 0, soon()), 'invalid_request');
  let isAborted = false;
  // On a busy machine it may be made before it is called off.
  for (let attempt = 1; attempt <= 20 && !isAborted; attempt++) {
    const controller = new AbortController();
    const watcher = watch(host.folder, () => controller.abort(new Error('enough')));
    isAborted = await volumes.create('vol', 100 * 1024, controller.signal).then(
      () => false,
      () => true,
    );
    watcher.close();
    if (!isAborted) await volumes.remove('vol');
  }
  assert.ok(isAborted);
  assert.deepEqual(await readdir(host.folder), []);
  assert.equal(await volumes.get('vol'), undefined);
});

test('a host call that fails fails the call and no later one', async () => {
  await using host = await makeRealHost();
  let failures = 1;
  const failing: HostCalls = Object.create(host.hostCalls, {
    mountImage: {
      value: async (request: Parameters<HostCalls['mountImage']>[0]) => {
        if (failures-- > 0) throw new Error('the host is tired');
        await host.hostCalls.mountImage(request);
      },
    },
    removeMountPoint: { value: (target: string) => host.hostCalls.removeMountPoint(target, 1) },
  });
  const volumes = await openVolume(host, { hostCalls: failing });
  await rejectsWith(volumes.attach('vol', 'sandbox', soon()), 'unavailable');
  const root = await volumes.attach('vol', 'sandbox', soon());
  assert.deepEqual(await readdir(root), []);
  await volumes.detach('vol', 'sandbox');
  await volumes.remove('vol');
});

test('a file server that cannot be started is reported, and the volume stays removable', async () => {
  await using host = await makeRealHost();
  const volumes = await openVolume(host, { initProgram: '/no/such/program' });
  await rejectsWith(volumes.files('vol').list('', soon()), 'unavailable');
  await volumes.remove('vol');
  assert.deepEqual(await readdir(host.folder), []);
});

test('a volume whose file system met errors is repaired as soon as no sandbox uses it', async () => {
  await using host = await makeRealHost();
  const volumes = await openVolume(host);
  await volumes.files('vol').write('file', content('kept'), soon());
  await volumes.attach('vol', 'sandbox', soon());
  const image = join(await folderOf(host), 'image.ext4');
  const device = devicesByImage().get(image) ?? '';
  await writeFile(`/sys/fs/ext4/${device}/trigger_fs_error`, 'as a full disk would');
  // Noted in the background.
  await waitUntil(async () => countErrors(device) === 1);
  // While the sandbox is there the volume is left as it is; the process that serves its files holds it too.
  assert.equal(await readText(volumes.files('vol'), 'file'), 'kept');
  assert.equal(countErrors(device), 1);
  await volumes.detach('vol', 'sandbox');
  assert.equal(await readText(volumes.files('vol'), 'file'), 'kept');
  assert.equal(countErrors(devicesByImage().get(image) ?? ''), 0);
});
