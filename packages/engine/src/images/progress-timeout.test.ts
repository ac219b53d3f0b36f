import assert from 'node:assert/strict';
import { suite, test, type TestContext } from 'node:test';
import { runDuringWaits, ProgressTimeout, stopDuringWaits } from './progress-timeout.ts';

suite('a progress timeout', () => {
  function begin(t: TestContext) {
    t.mock.timers.enable({ apis: ['setTimeout'] });
    const progress = new ProgressTimeout(1000);
    t.after(() => progress[Symbol.dispose]());
    const source = Promise.withResolvers<void>();
    async function* pieces() {
      yield Buffer.from('a');
      await source.promise;
      yield Buffer.from('b');
    }
    return { progress, pieces, come: source.resolve, pass: (ms: number) => t.mock.timers.tick(ms) };
  }

  test('aborts after its time without progress, and names the time', (t) => {
    const { progress, pass } = begin(t);
    pass(999);
    progress.note();
    pass(999);
    assert.equal(progress.signal.aborted, false);
    pass(1);
    assert.match(String(progress.signal.reason), /stood still for 1 seconds/);
  });

  test('can be multiplied for a long step', (t) => {
    const { progress, pass } = begin(t);
    progress.resume(10);
    pass(9999);
    assert.equal(progress.signal.aborted, false);
    pass(1);
    assert.equal(progress.signal.aborted, true);
  });

  test('is stopped while the source of the bytes is waited for', async (t) => {
    const { progress, pieces, come, pass } = begin(t);
    const read = stopDuringWaits(pieces(), progress);
    await read.next();
    const second = read.next();
    pass(100_000);
    come();
    await second;
    assert.equal(progress.signal.aborted, false);
    pass(1000);
    assert.equal(progress.signal.aborted, true, 'the reader of the bytes has to go on');
  });

  test('runs while the bytes of a program are waited for, and not while they are used', async (t) => {
    const { progress, pieces, pass } = begin(t);
    const read = runDuringWaits(pieces(), progress);
    await read.next();
    pass(100_000);
    assert.equal(progress.signal.aborted, false);
    void read.next();
    pass(1000);
    assert.equal(progress.signal.aborted, true);
  });
});
