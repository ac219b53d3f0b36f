import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { FairSemaphore } from './fair-semaphore.ts';

suite('a fair semaphore', () => {
  const signal = () => AbortSignal.timeout(100_000);
  const nothing = () => {};

  /** The permits that `count` calls get at once; the other calls wait. */
  async function acquire(
    semaphore: FairSemaphore,
    scope: string | null,
    count: number,
  ): Promise<Disposable[]> {
    const permits: Disposable[] = [];
    for (let asked = 0; asked < count; asked++)
      void semaphore.acquire(scope, nothing, signal()).then((permit) => permits.push(permit));
    await nextTurn();
    return permits;
  }

  test('grants a scope as many permits as are free, so that the next scope finds one', async () => {
    const semaphore = new FairSemaphore(8);
    const counts = [];
    for (const scope of ['a', 'b', 'c', 'd']) counts.push((await acquire(semaphore, scope, 20)).length);
    assert.deepEqual(counts, [4, 2, 1, 1]);
  });

  test('gives a released permit to the scope with the fewest, not to the first in the queue', async () => {
    const semaphore = new FairSemaphore(4);
    const greedy = await acquire(semaphore, 'greedy', 9);
    const others = [await acquire(semaphore, 'b', 1), await acquire(semaphore, 'c', 1)];
    assert.deepEqual([greedy.length, others.flat().length], [2, 2]);
    const late = await acquire(semaphore, 'late', 1);
    // The second call has no effect.
    for (let times = 0; times < 2; times++) greedy[0]?.[Symbol.dispose]();
    await nextTurn();
    assert.deepEqual([greedy.length, late.length], [2, 1]);
  });

  test('prefers the scope with fewer permits to one that waits longer', async () => {
    const semaphore = new FairSemaphore(6);
    const [first, second] = [await acquire(semaphore, 'first', 2), await acquire(semaphore, 'second', 2)];
    const waiting = [await acquire(semaphore, 'first', 1), await acquire(semaphore, 'second', 1)];
    assert.deepEqual([first.length, second.length, ...waiting.map(({ length }) => length)], [2, 2, 0, 0]);
    second[0]?.[Symbol.dispose]();
    await nextTurn();
    assert.deepEqual(
      waiting.map(({ length }) => length),
      [0, 1],
    );
  });

  test('limits the operator by the capacity alone, and reports that it waits', async () => {
    const semaphore = new FairSemaphore(3);
    assert.equal((await acquire(semaphore, null, 3)).length, 3);
    let waits = 0;
    const called = new AbortController();
    const fourth = semaphore.acquire(null, () => (waits += 1), called.signal);
    assert.equal(waits, 1);
    called.abort(new Error('enough'));
    await assert.rejects(fourth, /enough/);
  });

  test('loses no permit to a call that is aborted while it waits or as it is granted', async () => {
    const semaphore = new FairSemaphore(1);
    for (const isGranted of [false, true]) {
      const held = await semaphore.acquire('a', nothing, signal());
      const called = new AbortController();
      const waiting = semaphore.acquire('b', nothing, called.signal);
      if (isGranted) held[Symbol.dispose]();
      called.abort(new Error('gone'));
      await assert.rejects(waiting, /gone/);
      held[Symbol.dispose]();
      using _ = await semaphore.acquire('c', () => assert.fail('no permit is left'), signal());
    }
  });
});
