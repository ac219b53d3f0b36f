import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
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

/** A program of the host that has copied its mounts, as one started by a container engine has. */
async function startWithOwnMounts(
  ...flags: readonly string[]
): Promise<Disposable & { readonly pid: number }> {
  const child = spawn('unshare', ['--mount', ...flags, 'sleep', '300'], { stdio: 'ignore' });
  const pid = child.pid ?? 0;
  await waitUntil(async () => (await readFile(`/proc/${pid}/comm`, 'utf8')) === 'sleep\n');
  assert.notEqual(readlinkSync(`/proc/${pid}/ns/mnt`), readlinkSync('/proc/self/ns/mnt'));
  return { pid, [Symbol.dispose]: () => child.kill('SIGKILL') };
}

for (const propagation of ['private', 'slave', 'unchanged']) {
  test(`a program with copies of the mounts (${propagation}) does not keep a volume in use`, async () => {
    await using host = await makeRealHost();
    const volumes = await openVolume(host, { busyWaitMs: 0 });
    const root = await volumes.attach('vol', 'first', soon());
    using other = await startWithOwnMounts('--propagation', propagation);
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

test('the error of a volume that a program of the host holds names the program', async () => {
  await using host = await makeRealHost();
  const volumes = await openVolume(host, { busyWaitMs: 0 });
  const root = await volumes.attach('vol', 'first', soon());
  const inside = spawn('sleep', ['300'], { cwd: root, stdio: 'ignore' });
  try {
    await waitUntil(async () => readlinkSync(`/proc/${inside.pid}/cwd`) === root);
    await volumes.detach('vol', 'first');
    await waitUntil(async () => !(await readFile('/proc/self/mountinfo', 'utf8')).includes(root));
    const held = { code: 'unavailable', message: new RegExp(`process ${inside.pid} \\(sleep\\)`) };
    await assert.rejects(volumes.attach('vol', 'second', soon()), held);
  } finally {
    inside.kill('SIGKILL');
  }
});
