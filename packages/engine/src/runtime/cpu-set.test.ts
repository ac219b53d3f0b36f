import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { allowedCpus, parseCpuList, pinnedCpus } from './cpu-set.ts';

test('sandboxes spread over the CPUs of the host', () => {
  const host = [0, 1, 2, 3];
  assert.deepEqual(
    [0, 1, 2, 3, 4].map((first) => pinnedCpus(host, 1, first)),
    ['0', '1', '2', '3', '0'],
  );
  assert.equal(pinnedCpus(host, 2, 3), '0,3');
});

test('a sandbox with as many vcpus as the host, or more, is not pinned', () => {
  assert.equal(pinnedCpus([0, 1], 2, 0), null);
  assert.equal(pinnedCpus([0, 1], 64, 1), null);
  assert.equal(pinnedCpus([], 1, 0), null);
});

test('a pinned sandbox has exactly its number of different CPUs, all of them allowed', () => {
  const cpus = fc.uniqueArray(fc.nat({ max: 1023 }), { minLength: 2, maxLength: 64 });
  fc.assert(
    fc.property(cpus, fc.integer({ min: 1, max: 64 }), fc.nat(), (allowed, vcpus, first) => {
      const pinned = pinnedCpus(allowed, vcpus, first);
      if (vcpus >= allowed.length) return assert.equal(pinned, null);
      const picked = parseCpuList(pinned ?? '');
      assert.equal(new Set(picked).size, vcpus);
      assert.ok(picked.every((cpu) => allowed.includes(cpu)));
    }),
  );
});

test('the list form of the kernel is understood', () => {
  assert.deepEqual(parseCpuList('0-3,8,10-11\n'), [0, 1, 2, 3, 8, 10, 11]);
  assert.deepEqual(parseCpuList('\n'), []);
  assert.deepEqual(allowedCpus('Name:\tx\nCpus_allowed:\t3\nCpus_allowed_list:\t0-1\n'), [0, 1]);
});
