import assert from 'node:assert/strict';
import { test } from 'node:test';
import { GrantedSpace } from './granted-space.ts';
import type { DiskSample } from './watched-disk.ts';

const MIB = 2 ** 20;
const GRANTED = 1000 * MIB;

test('a distribution is valid while the free space is what was granted, or a little more', () => {
  const room = new GrantedSpace(GRANTED);
  assert.ok(room.holds(GRANTED));
  assert.ok(room.holds(1.1 * GRANTED));
  assert.ok(!room.holds(GRANTED - 1), 'other files have used the space');
  assert.ok(!room.holds(1.2 * GRANTED), 'there is more to share');
});

test('small writes reduce the granted space, and lead to a new distribution after a second', () => {
  const begun = performance.now();
  const room = new GrantedSpace(GRANTED);
  room.note(used(10), used(10.5), 64 * MIB);
  assert.ok(room.holds(GRANTED - 0.5 * MIB, begun + 999));
  assert.ok(!room.holds(GRANTED - 0.6 * MIB, begun + 999));
  assert.ok(!room.holds(GRANTED, performance.now() + 1001));
});

test('a disk that is written to, emptied, nearly full or gone leads to a new distribution', () => {
  const [idle, grant] = [used(10), 64 * MIB];
  const cases = [
    [idle, used(12), grant],
    [idle, used(9), grant],
    [idle, used(10.2), MIB],
    [idle, undefined, grant],
    [undefined, idle, grant],
  ] as const;
  for (const [before, now, granted] of cases) {
    const room = new GrantedSpace(GRANTED);
    room.note(idle, idle, granted);
    assert.ok(room.holds(GRANTED));
    room.note(before, now, granted);
    assert.ok(!room.holds(GRANTED), JSON.stringify([before, now]));
  }
});

function used(mib: number): DiskSample {
  return { usedBytes: mib * MIB, freeBytes: 0, allocatedBytes: 0, owedBytes: 0 };
}
