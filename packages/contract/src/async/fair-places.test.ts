import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { FairPlaces } from './fair-places.ts';

suite('places', () => {
  const signal = () => AbortSignal.timeout(100_000);
  const nothing = () => {};

  /** How many of `count` asked for at once got in; the others wait. */
  async function enter(turns: FairPlaces, scope: string | null, count: number): Promise<Disposable[]> {
    const entered: Disposable[] = [];
    for (let asked = 0; asked < count; asked++)
      void turns.take(scope, nothing, signal()).then((place) => entered.push(place));
    await nextTurn();
    return entered;
  }

  test('are as many for a scope as are free for others, and the next always finds one', async () => {
    const turns = new FairPlaces(8);
    const counts = [];
    for (const scope of ['a', 'b', 'c', 'd']) counts.push((await enter(turns, scope, 20)).length);
    assert.deepEqual(counts, [4, 2, 1, 1]);
  });

  test('go to who has the fewest when one is given back, whoever came first', async () => {
    const turns = new FairPlaces(4);
    const greedy = await enter(turns, 'greedy', 9);
    const others = [await enter(turns, 'b', 1), await enter(turns, 'c', 1)];
    assert.deepEqual([greedy.length, others.flat().length], [2, 2]);
    const late = await enter(turns, 'late', 1);
    // Twice is once.
    for (let times = 0; times < 2; times++) greedy[0]?.[Symbol.dispose]();
    await nextTurn();
    assert.deepEqual([greedy.length, late.length], [2, 1]);
  });

  test('go to who has fewer of two who may both have one, although the other waits longer', async () => {
    const turns = new FairPlaces(6);
    const [first, second] = [await enter(turns, 'first', 2), await enter(turns, 'second', 2)];
    const waiting = [await enter(turns, 'first', 1), await enter(turns, 'second', 1)];
    assert.deepEqual([first.length, second.length, ...waiting.map(({ length }) => length)], [2, 2, 0, 0]);
    second[0]?.[Symbol.dispose]();
    await nextTurn();
    assert.deepEqual(
      waiting.map(({ length }) => length),
      [0, 1],
    );
  });

  test('bound the operator by the whole alone, who is told that it waits', async () => {
    const turns = new FairPlaces(3);
    assert.equal((await enter(turns, null, 3)).length, 3);
    let waits = 0;
    const called = new AbortController();
    const fourth = turns.take(null, () => (waits += 1), called.signal);
    assert.equal(waits, 1);
    called.abort(new Error('enough'));
    await assert.rejects(fourth, /enough/);
  });

  test('are not lost by whoever leaves while it waits, or as it is let in', async () => {
    const turns = new FairPlaces(1);
    for (const isLetIn of [false, true]) {
      const held = await turns.take('a', nothing, signal());
      const called = new AbortController();
      const waiting = turns.take('b', nothing, called.signal);
      if (isLetIn) held[Symbol.dispose]();
      called.abort(new Error('gone'));
      await assert.rejects(waiting, /gone/);
      held[Symbol.dispose]();
      using _ = await turns.take('c', () => assert.fail('no place is left'), signal());
    }
  });
});
