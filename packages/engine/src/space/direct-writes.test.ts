import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync, statfsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { pino } from 'pino';
import { SvcHostCalls } from '../host/svc-host-calls.ts';
import { mountDisk } from '../testing/mounted-disk.ts';
import { DirectWrites } from './direct-writes.ts';
import type { MountedDisk } from './watched-disk.ts';

const logger = pino({ level: 'silent' });

function isDirect({ device }: MountedDisk): boolean {
  const args = ['--noheadings', '--output', 'DIO', `/dev/${device}`];
  return execFileSync('losetup', args, { encoding: 'utf8' }).trim() === '1';
}

function write(disk: MountedDisk, mib: number): void {
  writeFileSync(join(disk.mountPoint, 'file'), Buffer.alloc(mib * 2 ** 20, 1), { flush: true });
}

test('the disk of a guest that writes a lot goes past the page cache of the host, others do not', async (t) => {
  const calls = new SvcHostCalls();
  t.after(() => calls.close());
  const [busy, quiet] = [mountDisk(t), mountDisk(t)];
  const disks = [busy, quiet].map(({ disk }) => ({ disk }));
  const writes = new DirectWrites(busy.disk.image, calls, logger);
  writes.look(disks);
  write(busy.disk, 16);
  write(quiet.disk, 1);
  writes.look(disks);
  while (!isDirect(busy.disk)) await delay(10);
  assert.equal(isDirect(quiet.disk), false);
  write(busy.disk, 8);
  assert.equal(readFileSync(join(busy.disk.mountPoint, 'file')).length, 8 * 2 ** 20);
});

test('what was written before the first look says nothing, and a disk is asked for once', (t) => {
  const { asked, writes, watched } = watch(t);
  write(watched.disk, 16);
  writes.look([watched]);
  assert.deepEqual(asked, []);
  for (let look = 0; look < 3; look++) {
    write(watched.disk, 16);
    writes.look([watched]);
  }
  assert.deepEqual(asked, [watched.disk.device]);
});

test('a disk that writes a lot after everybody was quiet is seen when it goes on', (t) => {
  const { asked, writes, watched } = watch(t);
  writes.look([watched]);
  writes.look([watched]);
  for (let look = 0; look < 2; look++) {
    write(watched.disk, 16);
    writes.look([watched]);
  }
  assert.deepEqual(asked, [watched.disk.device]);
});

test('a file system that keeps sums, or has no disk, is left as it is', (t) => {
  const folder = '/dev/shm';
  assert.notEqual(statfsSync(folder).type, 0xef53, 'this test needs another file system');
  const { asked, writes, watched } = watch(t, folder);
  writes.look([watched]);
  write(watched.disk, 16);
  writes.look([watched]);
  assert.deepEqual(asked, []);
});

function watch(t: TestContext, folder?: string) {
  const { disk } = mountDisk(t);
  const asked: string[] = [];
  const calls = {
    writeDirectly: async (_image: string, device: string) => {
      asked.push(device.replace('/dev/', ''));
      await Promise.reject(new Error('a disk with larger sectors'));
    },
  };
  return { asked, watched: { disk }, writes: new DirectWrites(folder ?? disk.image, calls, logger) };
}
