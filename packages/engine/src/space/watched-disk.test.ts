import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { deviceOf } from './disk-limit.ts';
import { WatchedDisk } from './watched-disk.ts';

const MIB = 2 ** 20;

test('a disk is seen as it is, at every look: idle, written to, owed to, emptied, and gone', (t) => {
  const { disk, settle, unmount } = mountDisk(t);
  const watched = new WatchedDisk(disk);
  settle();
  const first = watched.sample();
  assert.ok(first !== undefined && first.freeBytes > 16 * MIB);
  assert.equal(first.owedBytes, 0);
  assert.equal(watched.sample(), first, 'nothing happens to it');

  const file = join(disk.mountPoint, 'file');
  writeFileSync(file, Buffer.alloc(8 * MIB, 1));
  const written = watched.sample();
  assert.equal(grownMib(first, written), 8);
  settle();
  const settled = watched.sample();
  assert.equal(settled?.owedBytes, 0, 'what the guest was told of is on the host’s disk');
  assert.ok((settled?.allocatedBytes ?? 0) >= first.allocatedBytes + 8 * MIB);
  assert.equal(watched.sample(), settled);

  rmSync(file);
  settle();
  assert.equal(grownMib(first, watched.sample()), 0);
  unmount();
  assert.equal(watched.sample(), undefined);
});

function grownMib(
  before: { readonly usedBytes: number },
  now: { readonly usedBytes: number } | undefined,
): number {
  return Math.round(((now?.usedBytes ?? 0) - before.usedBytes) / MIB);
}

/** An ext4 image of 64 MiB on a loop device, as disks of sandboxes are. */
function mountDisk(t: TestContext) {
  const folder = mkdtempSync(join(tmpdir(), 'svc-watched-disk-'));
  const image = join(folder, 'image');
  const mountPoint = join(folder, 'mount');
  mkdirSync(mountPoint);
  // SAFETY: no shell; the paths are mkdtemp's.
  const run = (program: string, ...args: readonly string[]) =>
    execFileSync(program, args, { stdio: ['ignore', 'ignore', 'pipe'] });
  const unmount = () => run('umount', mountPoint);
  run('truncate', '-s', '64M', image);
  run('mkfs.ext4', '-q', '-E', 'lazy_itable_init=0', image);
  run('mount', '-o', 'loop', image, mountPoint);
  t.after(() => {
    try {
      unmount();
    } catch {
      // The test has done it.
    }
    rmSync(folder, { recursive: true });
  });
  const settle = () => {
    run('sync', '--file-system', mountPoint);
    run('sync', '--file-system', image);
  };
  const disk = { kind: 'sandbox', key: 'one', image, mountPoint, device: deviceOf(mountPoint) } as const;
  return { disk, settle, unmount };
}
