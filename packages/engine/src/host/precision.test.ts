import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { test, type TestContext } from 'node:test';
import { makeTestHost } from '../testing/test-host.ts';

const ASLEEP = 'console.log("up"); setInterval(() => {}, 1_000_000)';
const GONE = 2 ** 22 + 1;

/** A program with many threads; its lines come one by one. */
async function startProgram(t: TestContext, code: string) {
  const child = spawn(process.execPath, ['-e', code], { stdio: ['ignore', 'pipe', 'ignore'] });
  t.after(() => child.kill('SIGKILL'));
  const lines: AsyncIterator<string> = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  assert.equal((await lines.next()).value, 'up');
  const pid = child.pid ?? 0;
  const slacks = () => [
    ...new Set(
      readdirSync(`/proc/${pid}/task`).map((thread) =>
        readFileSync(`/proc/${thread}/timerslack_ns`, 'utf8').trim(),
      ),
    ),
  ];
  return { pid, lines, slacks };
}

test('the timer slack of every thread is set, and sleeping threads are interrupted', async (t) => {
  await using host = await makeTestHost();
  const program = await startProgram(t, `process.on('SIGURG', () => console.log('urged')); ${ASLEEP}`);
  const before = program.slacks();
  await host.calls.setPrecision([program.pid, GONE], 1_000_000_000, false);
  assert.deepEqual(program.slacks(), ['1000000000']);
  await host.calls.setPrecision([GONE, program.pid], 50_000, true);
  assert.deepEqual(program.slacks(), before);
  // Its first line: no signal came before.
  assert.equal((await program.lines.next()).value, 'urged');
});

test('a helper that was killed is replaced', async (t) => {
  await using host = await makeTestHost();
  const program = await startProgram(t, ASLEEP);
  for (const slackNs of [2_000_000, 3_000_000]) {
    await host.calls.setPrecision([program.pid], slackNs, false);
    assert.deepEqual(program.slacks(), [String(slackNs)]);
    for (const pid of host.calls.pids) process.kill(pid, 'SIGKILL');
  }
  await host.calls.setPrecision([], 1, true);
});
