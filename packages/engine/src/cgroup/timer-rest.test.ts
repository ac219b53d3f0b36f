import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { TimerRest } from './timer-rest.ts';

test('every thread of a process rests and is woken, and processes that are gone are no matter', async (t) => {
  const child = spawn(process.execPath, ['-e', 'console.log("up"); setInterval(() => {}, 1000)'], {
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  t.after(() => child.kill('SIGKILL'));
  await once(child.stdout, 'data');
  const pid = child.pid ?? 0;
  const slacks = () =>
    new Set(
      readdirSync(`/proc/${pid}/task`).map((thread) =>
        readFileSync(`/proc/${thread}/timerslack_ns`, 'utf8').trim(),
      ),
    );
  const before = slacks();
  const timers = new TimerRest(() => [pid, 2 ** 22 - 1]);
  timers.rest();
  assert.deepEqual([...slacks()], ['20000000']);
  // As an engine does that finds it so.
  new TimerRest(() => [pid]).wake();
  assert.deepEqual(slacks(), before);
});
