import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { ThreadBudget } from './thread-budget.ts';

const LIMITS = { totalPerSecond: 4000, perSecond: 1000, burst: 500 };

function budget() {
  const clock = { ms: 0 };
  return { clock, budget: new ThreadBudget(LIMITS, () => clock.ms) };
}

test('a share has its burst at once, then waits for what it took too much', () => {
  const { clock, budget: all } = budget();
  const share = all.share();
  share.spend(500);
  assert.equal(share.waitMs(), 0);
  share.spend(100);
  assert.equal(share.waitMs(), 100);
  clock.ms += 100;
  assert.equal(share.waitMs(), 0);
  assert.equal(share.waitMs(500), 500, 'until its burst is there again');
  clock.ms += 10_000;
  share.spend(600);
  assert.equal(share.waitMs(), 100, 'rest gives no more than a burst');
});

test('those that want too much share alike what there is for all; who wants little does not wait', () => {
  const { budget: all } = budget();
  const greedy = Array.from({ length: 8 }, () => all.share());
  for (const share of greedy) share.spend(1000);
  // 500 too much, at 4000 / 8 a second.
  for (const share of greedy) assert.equal(share.waitMs(), 1000);
  const modest = all.share();
  modest.spend(400);
  assert.equal(modest.waitMs(), 0);
  for (const share of greedy.slice(1)) share.release();
  assert.equal(greedy[0]?.waitMs(), 500, 'who is gone takes no part');
});

test('what is given back was never taken', () => {
  const { budget: all } = budget();
  const share = all.share();
  for (let count = 0; count < 100; count++) {
    share.spend(400);
    share.spend(-400);
  }
  assert.equal(share.waitMs(), 0);
  share.spend(-10_000);
  share.spend(501);
  assert.ok(share.waitMs() > 0, 'and gives no more than a burst');
});

test('whoever waits as it is told never has more than its rate and one burst, whatever it takes', () => {
  const steps = fc.array(fc.record({ amount: fc.integer({ min: 1, max: 300 }), pause: fc.nat(200) }), {
    minLength: 1,
    maxLength: 100,
  });
  fc.assert(
    fc.property(steps, (taken) => {
      const { clock, budget: all } = budget();
      const share = all.share();
      let sum = 0;
      for (const { amount, pause } of taken) {
        clock.ms += Math.max(pause, share.waitMs());
        // What is taken last may be too much by itself, and is waited for afterwards.
        assert.ok(sum <= LIMITS.burst + (LIMITS.perSecond * clock.ms) / 1000 + 1e-6);
        share.spend(amount);
        sum += amount;
      }
    }),
  );
});
