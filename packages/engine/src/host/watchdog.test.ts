import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { test, type TestContext } from 'node:test';
import { readProcessState } from './process-state.ts';
import { Watchdog, type Watched } from './watchdog.ts';

const TICK_MS = 1;

/** Resolves with what was noticed, and after how many looks. */
async function watch(
  t: TestContext,
  watched: Pick<Watched, 'ask'> & { readonly look: (count: number) => ReturnType<Watched['look']> },
): Promise<{ readonly reason: string; readonly looks: number }> {
  let looks = 0;
  const { promise, resolve } = Promise.withResolvers<{ reason: string; looks: number }>();
  const watchdog = new Watchdog(
    {
      ask: watched.ask,
      look: () => watched.look((looks += 1)),
      onFrozen: (reason) => resolve({ reason, looks }),
    },
    TICK_MS,
  );
  t.after(() => watchdog.close());
  // The timer of a watchdog keeps no process; nor does this test.
  const keep = setInterval(() => undefined, 1000);
  t.after(() => clearInterval(keep));
  return await promise;
}

const never = () => new Promise<void>(() => undefined);
const answers = async () => await Promise.resolve();

test('a process that a signal stopped is noticed at the second look, though it has just answered', async (t) => {
  const child = spawn('sleep', ['1000']);
  t.after(() => child.kill('SIGKILL'));
  await once(child, 'spawn');
  child.kill('SIGSTOP');
  const { pid = 0 } = child;
  const { reason } = await watch(t, { ask: answers, look: () => readProcessState(pid) });
  assert.equal(reason, 'it was stopped by a signal');
});

test('a process that does not answer is reported after ten checks when it uses no CPU, after sixty when it does', async (t) => {
  const quiet = { state: 'D', cpuTicks: 5 };
  assert.deepEqual(await watch(t, { ask: never, look: async () => await Promise.resolve(quiet) }), {
    reason: 'it does not answer',
    looks: 11, // At the first look it had worked since it was started.
  });
  const busy = async (count: number) => await Promise.resolve({ state: 'R', cpuTicks: count });
  assert.deepEqual(await watch(t, { ask: never, look: busy }), { reason: 'it does not answer', looks: 60 });
});

test('a moment is no freeze, and one that answers again is reported once', async (t) => {
  const events: string[] = [];
  const { promise, resolve } = Promise.withResolvers<void>();
  let answer = () => undefined as void;
  let looks = 0;
  const watchdog = new Watchdog(
    {
      ask: () => new Promise<void>((settle) => (answer = settle)),
      look: async () => {
        looks += 1;
        if (looks === 5) answer();
        // Stopped at every other look before it stays so.
        return await Promise.resolve({ state: looks > 10 || looks % 2 === 0 ? 'T' : 'S', cpuTicks: looks });
      },
      onFrozen: () => {
        events.push(looks > 10 ? 'frozen' : 'too early');
        answer();
      },
      onBack: () => {
        events.push('back');
        resolve();
      },
    },
    TICK_MS,
  );
  t.after(() => watchdog.close());
  const keep = setInterval(() => undefined, 1000);
  t.after(() => clearInterval(keep));
  await promise;
  assert.deepEqual(events.slice(0, 2), ['frozen', 'back']);
});
