import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { TokenBuckets } from './token-buckets.ts';

const LIMITS = { totalPerSecond: 4000, perSecond: 1000, burst: 500 };

function testBuckets() {
  const clock = { ms: 0 };
  return { clock, buckets: new TokenBuckets(LIMITS, () => clock.ms) };
}

test('a bucket starts full; an overdrawn one is refilled at its rate', () => {
  const { clock, buckets } = testBuckets();
  const bucket = buckets.create();
  bucket.spend(500);
  assert.equal(bucket.waitMs(), 0);
  bucket.spend(100);
  assert.equal(bucket.waitMs(), 100);
  clock.ms += 100;
  assert.equal(bucket.waitMs(), 0);
  assert.equal(bucket.waitMs(500), 500, 'until it is full again');
  clock.ms += 10_000;
  bucket.spend(600);
  assert.equal(bucket.waitMs(), 100, 'a pause gives no more than a burst');
});

test('overdrawn buckets divide the common rate equally; a bucket that is not overdrawn does not wait', () => {
  const { buckets } = testBuckets();
  const greedy = Array.from({ length: 8 }, () => buckets.create());
  for (const bucket of greedy) bucket.spend(1000);
  // 500 too much, at 4000 / 8 a second.
  for (const bucket of greedy) assert.equal(bucket.waitMs(), 1000);
  const modest = buckets.create();
  modest.spend(400);
  assert.equal(modest.waitMs(), 0);
  for (const bucket of greedy.slice(1)) bucket.release();
  assert.equal(greedy[0]?.waitMs(), 500, 'released buckets do not count');
});

test('returned tokens were never taken', () => {
  const { buckets } = testBuckets();
  const bucket = buckets.create();
  for (let count = 0; count < 100; count++) {
    bucket.spend(400);
    bucket.spend(-400);
  }
  assert.equal(bucket.waitMs(), 0);
  bucket.spend(-10_000);
  bucket.spend(501);
  assert.ok(bucket.waitMs() > 0, 'and gives no more than a burst');
});

test('a guest that waits as told spends at most its rate and one burst', () => {
  const steps = fc.array(fc.record({ amount: fc.integer({ min: 1, max: 300 }), pause: fc.nat(200) }), {
    minLength: 1,
    maxLength: 100,
  });
  fc.assert(
    fc.property(steps, (taken) => {
      const { clock, buckets } = testBuckets();
      const bucket = buckets.create();
      let sum = 0;
      for (const { amount, pause } of taken) {
        clock.ms += Math.max(pause, bucket.waitMs());
        // What is taken last may exceed the rate alone, and is waited for afterwards.
        assert.ok(sum <= LIMITS.burst + (LIMITS.perSecond * clock.ms) / 1000 + 1e-6);
        bucket.spend(amount);
        sum += amount;
      }
    }),
  );
});
