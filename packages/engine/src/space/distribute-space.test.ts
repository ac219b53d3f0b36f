import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { distributeSpace } from './distribute-space.ts';

const GIB = 2 ** 30;

test('with enough space every request is met', () => {
  const requests = [
    { wantedBytes: 4 * GIB, weight: 1 },
    { wantedBytes: GIB, weight: 16 },
  ];
  assert.deepEqual(distributeSpace(requests, 5 * GIB), [4 * GIB, GIB]);
});

test('with too little space a disk with more weight gets more, and leaves what it does not need', () => {
  const rests = { wantedBytes: 8 * GIB, weight: 1 };
  const writes = { wantedBytes: 8 * GIB, weight: 3 };
  assert.deepEqual(distributeSpace([rests, writes], 4 * GIB), [GIB, 3 * GIB]);
  assert.deepEqual(distributeSpace([rests, { ...writes, wantedBytes: GIB }], 4 * GIB), [3 * GIB, GIB]);
  assert.deepEqual(distributeSpace([rests, writes], -GIB), [0, 0]);
});

test('shares add up to at most the space, none exceeds its request, and no space is left over needlessly', () => {
  const request = fc.record({
    wantedBytes: fc.integer({ min: 0, max: 2 ** 42 }),
    weight: fc.constantFrom(1, 16),
  });
  fc.assert(
    fc.property(fc.array(request, { maxLength: 40 }), fc.integer({ min: 0, max: 2 ** 44 }), (all, room) => {
      const shares = distributeSpace(all, room);
      const given = shares.reduce((sum, share) => sum + share, 0);
      const wanted = all.reduce((sum, { wantedBytes }) => sum + wantedBytes, 0);
      assert.ok(given <= room);
      assert.ok(given >= Math.min(room, wanted) - all.length, 'rounding costs a byte each');
      for (const [index, share] of shares.entries())
        assert.ok(share >= 0 && share <= (all[index]?.wantedBytes ?? 0));
    }),
  );
});
