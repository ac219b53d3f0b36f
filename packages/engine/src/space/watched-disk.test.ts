import assert from 'node:assert/strict';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { mountDisk } from '../testing/mounted-disk.ts';
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
