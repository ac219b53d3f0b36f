import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync, statfsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
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

test('a disk is written to past the page cache of the host', async (t) => {
  const calls = new SvcHostCalls();
  t.after(() => calls.close());
  const { disk } = mountDisk(t);
  assert.equal(isDirect(disk), false);
  new DirectWrites(disk.image, calls, logger).begin(disk);
  while (!isDirect(disk)) await delay(10);
  const content = Buffer.alloc(8 * 2 ** 20, 1);
  const file = join(disk.mountPoint, 'file');
  writeFileSync(file, content, { flush: true });
  assert.deepEqual(readFileSync(file), content);
});

test('a disk that refuses is written to as before', async (t) => {
  const { disk } = mountDisk(t);
  const asked: string[] = [];
  const writeDirectly = async (image: string, device: string) => {
    asked.push(image, device);
    await Promise.reject(new Error('a disk with larger sectors'));
  };
  new DirectWrites(disk.image, { writeDirectly }, logger).begin(disk);
  await delay(0);
  assert.deepEqual(asked, [disk.image, `/dev/${disk.device}`]);
});

test('a file system that keeps checksums, or has no disk, is left as it is', (t) => {
  const folder = '/dev/shm';
  assert.notEqual(statfsSync(folder).type, 0xef53, 'this test needs another file system');
  const writeDirectly = () => assert.fail('asked for what it cannot do');
  new DirectWrites(folder, { writeDirectly }, logger).begin(mountDisk(t).disk);
});
