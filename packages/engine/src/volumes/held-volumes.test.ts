import assert from 'node:assert/strict';
import { spawn, type ChildProcess } from 'node:child_process';
import { readlinkSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { waitUntil } from '@svc/contract/testing';
import { makeRealHost } from '../testing/volumes-host.ts';
import type { RealHost } from '../testing/volumes-host.ts';
import type { DiskVolumes, DiskVolumesOptions } from './disk-volumes.ts';
import { soon } from './volumes.suite.ts';

async function openVolume(host: RealHost, options: Partial<DiskVolumesOptions> = {}): Promise<DiskVolumes> {
  const volumes = host.open({ unmountGraceMs: 0, ...options });
  await volumes.recover(new Map());
  await volumes.create('vol', 32, soon());
  return volumes;
}

/** A program of the host with a copy of the mounts, as container engines start it. */
async function startWithOwnMounts(
  flags: readonly string[] = [],
  user = 0,
): Promise<Disposable & { readonly pid: number }> {
  const as = ['--reuid', String(user), '--regid', String(user), '--clear-groups', 'unshare', '--mount'];
  const child = spawn('setpriv', [...as, ...flags, 'sleep', '300'], { stdio: 'ignore', cwd: '/' });
  const pid = child.pid ?? 0;
  await waitUntil(async () => (await readFile(`/proc/${pid}/comm`, 'utf8')) === 'sleep\n');
  assert.notEqual(readlinkSync(`/proc/${pid}/ns/mnt`), readlinkSync('/proc/self/ns/mnt'));
  return { pid, [Symbol.dispose]: () => child.kill('SIGKILL') };
}

const PROGRAMS = {
  'with private copies': { flags: ['--propagation', 'private'], user: 0 },
  'with copies that follow the host': { flags: ['--propagation', 'slave'], user: 0 },
  'with shared copies': { flags: ['--propagation', 'unchanged'], user: 0 },
  'of an unprivileged user': { flags: ['--user', '--map-root-user'], user: 65_534 },
} as const;

for (const [which, { flags, user }] of Object.entries(PROGRAMS)) {
  test(`a program ${which} does not keep a volume in use`, async () => {
    await using host = await makeRealHost();
    const volumes = await openVolume(host, { busyWaitMs: 0 });
    const root = await volumes.attach('vol', 'first', soon());
    using other = await startWithOwnMounts(flags, user);
    await writeFile(join(root, 'file'), 'from the first');
    await volumes.detach('vol', 'first');
    await waitUntil(async () => (await host.inUse()).length === 0);
    assert.ok(!(await readFile(`/proc/${other.pid}/mountinfo`, 'utf8')).includes(host.folder));
    await volumes.resize('vol', 16, soon());
    await volumes.attach('vol', 'second', soon());
    assert.equal(await readFile(join(root, 'file'), 'utf8'), 'from the first');
    await volumes.detach('vol', 'second');
  });
}

test('a copy of the mount that an operator left behind gives way to the next use', async () => {
  await using host = await makeRealHost();
  const volumes = await openVolume(host, { unmountGraceMs: 100_000 });
  const root = await volumes.attach('vol', 'first', soon());
  using _other = await startWithOwnMounts();
  await host.run('umount', root);
  await volumes.attach('vol', 'first', soon());
  assert.equal(await host.run('stat', '--file-system', '--format=%T', root), 'ext2/ext3\n');
  await volumes.detach('vol', 'first');
});

/** Refused because of this process, which ends afterwards. */
async function assertHeld(host: RealHost, volumes: DiskVolumes, holder: ChildProcess): Promise<void> {
  try {
    await volumes.detach('vol', 'first');
    await waitUntil(async () => !(await readFile('/proc/self/mountinfo', 'utf8')).includes(host.folder));
    const held = { code: 'unavailable', message: new RegExp(`process ${holder.pid} \\(sleep\\)`) };
    await assert.rejects(volumes.attach('vol', 'second', soon()), held);
  } finally {
    holder.kill('SIGKILL');
  }
}

test('the error of a volume that a program of the host works in names the program', async () => {
  await using host = await makeRealHost();
  const volumes = await openVolume(host, { busyWaitMs: 0 });
  const root = await volumes.attach('vol', 'first', soon());
  const inside = spawn('sleep', ['300'], { cwd: root, stdio: 'ignore' });
  await waitUntil(async () => readlinkSync(`/proc/${inside.pid}/cwd`) === root);
  await assertHeld(host, volumes, inside);
});

test('the error of a volume that a container of another engine has bound names the program', async () => {
  await using host = await makeRealHost();
  const volumes = await openVolume(host, { busyWaitMs: 0 });
  const root = await volumes.attach('vol', 'first', soon());
  const script = 'mkdir "$1" && mount --bind "$0" "$1" && exec sleep 300';
  const bound = join(host.folder, '../bound');
  const container = spawn('unshare', ['--mount', 'sh', '-c', script, root, bound], { stdio: 'ignore' });
  await waitUntil(async () => (await readFile(`/proc/${container.pid}/comm`, 'utf8')) === 'sleep\n');
  await assertHeld(host, volumes, container);
});
