import assert from 'node:assert/strict';
import { rmSync, statfsSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { inspect } from 'node:util';
import { mountDisk } from '../testing/mounted-disk.ts';
import { WatchedDisk } from './watched-disk.ts';

const MIB = 2 ** 20;

test('samples show an idle disk, writes, unflushed data, deletions, and a removed disk', (t) => {
  const { disk, settle, unmount } = mountDisk(t);
  const watched = new WatchedDisk(disk);
  settle();
  const first = watched.sample();
  assert.ok(first !== undefined && first.freeBytes > 16 * MIB, inspect(first));
  const host = inspect({ first, image: statSync(disk.image), fileSystem: statfsSync(disk.image) });
  assert.equal(first.owedBytes, 0, host);
  assert.equal(watched.sample(), first, 'nothing happens to it');

  const file = join(disk.mountPoint, 'file');
  writeFileSync(file, Buffer.alloc(8 * MIB, 1));
  const written = watched.sample();
  assert.equal(grownMib(first, written), 8, inspect({ first, written }));
  settle();
  const settled = watched.sample();
  assert.ok(settled !== undefined);
  const seen = inspect({ settled, host });
  assert.equal(settled.owedBytes, 0, `what the guest was told of is on the host’s disk: ${seen}`);
  assert.ok(settled.allocatedBytes >= first.allocatedBytes + 8 * MIB, seen);
  assert.equal(watched.sample(), settled, seen);

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
