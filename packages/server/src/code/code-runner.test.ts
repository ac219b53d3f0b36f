import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { PlatformError } from '@svc/contract';
import { pino } from 'pino';
import { createCodeRunner } from './code-runner.ts';
import type { CodeResult } from './slot-request.ts';
import { TestSandbox } from '../testing/code-sandbox.ts';

const logger = pino({ level: 'silent' });
const never = new AbortController().signal;
let sandbox: TestSandbox;
let runner: ReturnType<typeof createCodeRunner>;

before(async () => {
  sandbox = await TestSandbox.start();
  const openChannel = (_id: string, signal: AbortSignal) => sandbox.openChannel(signal);
  // So that a busy machine does not keep code from reacting to an interruption.
  runner = createCodeRunner({ openChannel, logger, killMs: 60_000 });
});
after(async () => {
  runner.close();
  await sandbox.stop();
});

test('calls of one language queue, and other languages do not wait for them', async () => {
  const run = runIn('queue');
  const order: string[] = [];
  await run('python', '0');
  const slow = run('python', 'import time; time.sleep(0.3); a = 1').then(() => order.push('slow'));
  const queued = run('python', 'a + 1').then(({ output }) => order.push(`queued ${output.trim()}`));
  const other = run('node', '1').then(() => order.push('other'));
  await Promise.all([slow, queued, other]);
  assert.ok(order.indexOf('slow') < order.indexOf('queued 2'), order.join());
});

test('two sandboxes share no state', async () => {
  await runIn('first')('python', 'mine = 1');
  const { error } = await runIn('second')('python', 'mine');
  assert.match(error, /NameError/);
});

test('a caller that goes away gets its answer at once, and its code is interrupted', async () => {
  const run = runIn('aborted');
  await run('python', 'kept = 7');
  const gone = new AbortController();
  const running = run('python', 'import time\nwhile True: time.sleep(0.01)', 60_000, gone.signal);
  const queuedGone = new AbortController();
  const queued = run('python', 'ran = True', 60_000, queuedGone.signal);
  queuedGone.abort(new Error('left the queue'));
  await assert.rejects(queued, /left the queue/);
  gone.abort(new Error('went away'));
  await assert.rejects(running, /went away/);
  assert.deepEqual(await run('python', 'kept, "ran" in globals()'), success('(7, False)\n'));
});

test('an interpreter outlives the call that started it, and the signal of that call', async () => {
  const run = runIn('outlives');
  const gone = new AbortController();
  await run('python', 'kept = 7', 20_000, gone.signal);
  gone.abort(new Error('the answer was sent'));
  assert.deepEqual(await run('python', 'kept'), success('7\n'));
});

test('a later server finds an interpreter again, with its state and without its old output', async () => {
  const run = runIn('forgotten');
  await run('python', 'old = 1; print("before")');
  runner.forget('forgotten');
  assert.deepEqual(await run('python', '"old" in globals()'), success('True\n'));
});

test('code that is asked for again under the same name ran once, and gives the same outcome', async () => {
  const request = { sandboxId: 'again', language: 'python', timeoutMs: 60_000 } as const;
  const code = 'n = globals().get("n", 0) + 1; print("run", n); n';
  const work = { id: 'one', isRepeat: false };
  const first = await runner.run({ ...request, code, work }, never);
  assert.deepEqual(first, success('run 1\n1\n'));
  assert.deepEqual(
    await runner.run({ ...request, code, work: { id: 'two', isRepeat: true } }, never),
    success('run 2\n2\n'),
  );
  runner.forget('again');
  assert.deepEqual(await runner.run({ ...request, code, work: { ...work, isRepeat: true } }, never), first);
  // Also when its interpreter has ended, and another one has taken its place.
  const end = { id: 'three', isRepeat: false };
  const ended = await runner.run(
    { ...request, code: 'print("last", flush=True); import os; os._exit(3)', work: end },
    never,
  );
  assert.match(ended.error, /exited with code 3/);
  await runner.run({ ...request, code: '1' }, never);
  assert.deepEqual(await runner.run({ ...request, code, work: { ...end, isRepeat: true } }, never), ended);
  assert.deepEqual(await runner.run({ ...request, code, work: { ...work, isRepeat: true } }, never), first);
});

test('of code that ran and of which nothing is kept it is said so', async () => {
  const request = { sandboxId: 'much', language: 'python', timeoutMs: 60_000 } as const;
  const work = { id: 'early', isRepeat: false };
  await runner.run({ ...request, code: 'print("early")', work }, never);
  await runner.run(
    { ...request, code: 'import sys; print("x" * 3_000_000); print("x" * 3_000_000, file=sys.stderr)' },
    never,
  );
  await assert.rejects(
    runner.run({ ...request, code: 'print("early")', work: { ...work, isRepeat: true } }, never),
    (error) => PlatformError.is(error, 'idempotency_conflict'),
  );
});

test('code that runs while its sandbox is forgotten ends with an error', async () => {
  const run = runIn('stopped');
  await run('node', '1');
  const running = run('node', 'await new Promise(() => {})');
  // The turn of a call begins in a microtask.
  await new Promise((resolve) => setImmediate(resolve));
  runner.forget('stopped');
  await assert.rejects(running, (error) => PlatformError.is(error, 'unavailable'));
});

test('an engine that goes away and comes back costs neither state nor output', async () => {
  const own = await TestSandbox.start();
  const runs = createCodeRunner({ openChannel: (_id, signal) => own.openChannel(signal), logger });
  try {
    const request = { sandboxId: 's', language: 'python', timeoutMs: 60_000 } as const;
    await runs.run({ ...request, code: 'x = 1' }, never);
    const code = 'print("in", flush=True); import time; time.sleep(1); print("out"); x = x + 1';
    const running = runs.run({ ...request, code }, never);
    await own.loseEngine();
    await own.restoreEngine();
    assert.deepEqual(await running, success('in\nout\n'));
    assert.deepEqual(await runs.run({ ...request, code: 'x' }, never), success('2\n'));
  } finally {
    runs.close();
    await own.stop();
  }
});

test('an interpreter that is missing is named', async () => {
  const bare = await TestSandbox.start({ env: { PATH: '/nothing' } });
  const runs = createCodeRunner({ openChannel: (_id, signal) => bare.openChannel(signal), logger });
  try {
    for (const [language, program] of [
      ['python', 'python3'],
      ['node', 'node'],
    ] as const) {
      const failing = runs.run({ sandboxId: 's', language, code: '1', timeoutMs: null }, never);
      await assert.rejects(failing, (error) => {
        assert.ok(PlatformError.is(error, 'exec_failed'));
        assert.match(error.message, new RegExp(`'${program}' is not in the sandbox`));
        return true;
      });
    }
  } finally {
    runs.close();
    await bare.stop();
  }
});

test('a program that is no interpreter gives its own words as the reason', async () => {
  const odd = await TestSandbox.start({ env: { PYTHONHOME: '/nowhere' } });
  const runs = createCodeRunner({ openChannel: (_id, signal) => odd.openChannel(signal), logger });
  try {
    const failing = runs.run({ sandboxId: 's', language: 'python', code: '1', timeoutMs: null }, never);
    await assert.rejects(failing, /'python3' of this sandbox could not be started: .*encodings/);
  } finally {
    runs.close();
    await odd.stop();
  }
});

test('an interpreter works as a user without rights', async () => {
  const unprivileged = await TestSandbox.start({ user: '65534:65534' });
  const runs = createCodeRunner({ openChannel: (_id, signal) => unprivileged.openChannel(signal), logger });
  try {
    const request = { sandboxId: 's', timeoutMs: 60_000 };
    const python = await runs.run({ ...request, language: 'python', code: 'import os; os.getuid()' }, never);
    const node = await runs.run({ ...request, language: 'node', code: 'process.getuid()' }, never);
    assert.deepEqual([python, node], [success('65534\n'), success('65534\n')]);
  } finally {
    runs.close();
    await unprivileged.stop();
  }
});

test('an interpreter that the OOM killer took is said to have run out of memory', async () => {
  const small = await TestSandbox.start();
  const runs = createCodeRunner({ openChannel: (_id, signal) => small.openChannel(signal), logger });
  small.blamesMemory = true;
  try {
    const request = { sandboxId: 's', timeoutMs: 60_000 };
    const codes = { python: 'import os; os.kill(os.getpid(), 9)', node: 'process.kill(process.pid, 9)' };
    for (const language of ['python', 'node'] as const) {
      const { status, error } = await runs.run({ ...request, language, code: codes[language] }, never);
      assert.equal(status, 'error');
      assert.match(error, /killed because the sandbox ran out of memory; its state is lost/);
    }
  } finally {
    runs.close();
    await small.stop();
  }
});

function runIn(sandboxId: string) {
  return async (
    language: 'python' | 'node',
    code: string,
    timeoutMs = 60_000,
    signal = never,
  ): Promise<CodeResult> => await runner.run({ sandboxId, language, code, timeoutMs }, signal);
}

function success(output: string): CodeResult {
  return { status: 'success', output, error: '', truncated: false };
}
