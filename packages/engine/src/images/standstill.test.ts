import assert from 'node:assert/strict';
import { suite, test, type TestContext } from 'node:test';
import { hurried, Standstill, unhurried } from './standstill.ts';

suite('a standstill', () => {
  function begin(t: TestContext) {
    t.mock.timers.enable({ apis: ['setTimeout'] });
    const standstill = new Standstill(1000);
    t.after(() => standstill[Symbol.dispose]());
    const source = Promise.withResolvers<void>();
    async function* pieces() {
      yield Buffer.from('a');
      await source.promise;
      yield Buffer.from('b');
    }
    return { standstill, pieces, come: source.resolve, pass: (ms: number) => t.mock.timers.tick(ms) };
  }

  test('ends the work after so long without a move, and says for how long', (t) => {
    const { standstill, pass } = begin(t);
    pass(999);
    standstill.moved();
    pass(999);
    assert.equal(standstill.signal.aborted, false);
    pass(1);
    assert.match(String(standstill.signal.reason), /stood still for 1 seconds/);
  });

  test('leaves longer for what takes longer', (t) => {
    const { standstill, pass } = begin(t);
    standstill.resume(10);
    pass(9999);
    assert.equal(standstill.signal.aborted, false);
    pass(1);
    assert.equal(standstill.signal.aborted, true);
  });

  test('is none while the bytes themselves are waited for, however long they take', async (t) => {
    const { standstill, pieces, come, pass } = begin(t);
    const read = unhurried(pieces(), standstill);
    await read.next();
    const second = read.next();
    pass(100_000);
    come();
    await second;
    assert.equal(standstill.signal.aborted, false);
    pass(1000);
    assert.equal(standstill.signal.aborted, true, 'what has them is to go on');
  });

  test('is one when the bytes of a program do not come, not while others work with them', async (t) => {
    const { standstill, pieces, pass } = begin(t);
    const read = hurried(pieces(), standstill);
    await read.next();
    pass(100_000);
    assert.equal(standstill.signal.aborted, false);
    void read.next();
    pass(1000);
    assert.equal(standstill.signal.aborted, true);
  });
});
