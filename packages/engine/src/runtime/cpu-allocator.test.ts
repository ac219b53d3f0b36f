import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CpuAllocator } from './cpu-allocator.ts';

test('positions are given round robin, a freed one first', () => {
  const cpus = new CpuAllocator(4);
  assert.deepEqual(
    ['a', 'b', 'c', 'd', 'e'].map((handle) => cpus.allocate(handle, 1)),
    [0, 1, 2, 3, 0],
  );
  cpus.free('c');
  assert.equal(cpus.allocate('f', 1), 2);
  // CPU 0 has two sandboxes, the others one each.
  assert.deepEqual([cpus.allocate('g', 1), cpus.allocate('h', 1)], [3, 1]);
});

test('a short-lived sandbox does not get the CPU of one that stays', () => {
  const cpus = new CpuAllocator(2);
  assert.equal(cpus.allocate('quiet', 1), 0);
  for (let count = 0; count < 5; count++) {
    assert.equal(cpus.allocate('other', 1), 1);
    cpus.free('other');
  }
});

test('several vCPUs get the least used neighbouring CPUs, also around the end', () => {
  const cpus = new CpuAllocator(4);
  for (const handle of ['a', 'b']) cpus.allocate(handle, 1);
  assert.equal(cpus.allocate('wide', 2), 2);
  cpus.free('a');
  cpus.free('wide');
  assert.equal(cpus.allocate('wider', 3), 2, 'all but the one at 1');
});

test('a sandbox with as many vCPUs as the host is not counted; freeing twice or an unknown handle does nothing', () => {
  const cpus = new CpuAllocator(2);
  assert.deepEqual([cpus.allocate('whole', 2), cpus.allocate('more', 64)], [0, 0]);
  cpus.free('whole');
  cpus.free('whole');
  cpus.free('unknown');
  assert.deepEqual([cpus.allocate('a', 1), cpus.allocate('b', 1)], [0, 1]);
});
