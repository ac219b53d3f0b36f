import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { SlotIndexes } from './slot-indexes.ts';

test('an index from a range is free and in the range; null when all are taken', () => {
  const indexes = new SlotIndexes(10);
  indexes.reserve(8);
  const two = [1, 2].map(() => indexes.takeWithin({ first: 7, last: 12 }));
  assert.deepEqual(new Set(two), new Set([7, 9]));
  assert.equal(indexes.hasFree({ first: 7, last: 12 }), false);
  assert.equal(indexes.takeWithin({ first: 7, last: 12 }), null);
  assert.equal(indexes.takeWithin({ first: 5, last: 4 }), null);
  indexes.release(8);
  assert.equal(indexes.takeWithin({ first: 7, last: 9 }), 8);
});

test('no index has two owners, and one is free as long as not all are taken', () => {
  fc.assert(
    fc.property(fc.array(fc.oneof(fc.constant('take' as const), fc.nat(9)), { maxLength: 100 }), (steps) => {
      const indexes = new SlotIndexes(10);
      const taken = new Set<number>();
      for (const step of steps) {
        if (step !== 'take') {
          indexes.release(step);
          taken.delete(step);
          continue;
        }
        const index = indexes.take();
        if (index === null) {
          assert.equal(taken.size, 10);
          continue;
        }
        assert.ok(index >= 0 && index < 10 && !taken.has(index));
        taken.add(index);
      }
    }),
  );
});

test('a released index comes back after all others had their turn', () => {
  const indexes = new SlotIndexes(5);
  const first = indexes.take();
  assert.ok(first !== null);
  indexes.release(first);
  const following = Array.from({ length: 4 }, () => indexes.take());
  assert.ok(!following.includes(first));
  assert.equal(indexes.take(), first);
});

test('the cycle leaves out what is above its end, which a range reaches', () => {
  const indexes = new SlotIndexes(5, 2);
  assert.equal(indexes.takeWithin({ first: 4, last: 4 }), 4);
  assert.deepEqual(new Set([indexes.take(), indexes.take(), indexes.take()]), new Set([0, 1, null]));
  assert.equal(indexes.hasFree({ first: 0, last: 1 }), false);
  assert.equal(indexes.hasFree({ first: 0, last: 4 }), true);
});

test('a reserved index is never handed out', () => {
  const indexes = new SlotIndexes(3);
  indexes.reserve(1);
  assert.deepEqual(new Set([indexes.take(), indexes.take(), indexes.take()]), new Set([0, 2, null]));
});
