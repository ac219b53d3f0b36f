import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { after, before, test } from 'node:test';
import { PlatformError, type ErrorCode } from '@svc/contract';
import { MAX_CODE_CONTEXTS } from '@svc/contract/rest';
import { CodeContexts, type CodeContext, type ContextSpec } from './code-contexts.ts';
import { runEvents, type RunEnd } from './run-events.ts';
import { TestSandbox } from './test-sandbox.ts';

const logger = { debug: () => undefined };
const never = new AbortController().signal;
let sandbox: TestSandbox;
let contexts: CodeContexts;

before(async () => {
  sandbox = await TestSandbox.start();
  contexts = new CodeContexts({ openChannel: (_id, signal) => sandbox.openChannel(signal), logger });
});
after(async () => {
  contexts.close();
  await sandbox.stop();
});

const BOX = { sandboxId: 'box', runId: 'run' };
const PYTHON: ContextSpec = { language: 'python', name: null, place: {} };

for (const [language, set, get] of [
  ['python', 'x = 1', '"x" in globals()'],
  ['node', 'var x = 1', '"x" in globalThis'],
] as const) {
  test(`contexts share no state and keep their own (${language})`, async () => {
    const first = await contexts.create(BOX, { ...PYTHON, language }, never);
    const second = await contexts.create(BOX, { ...PYTHON, language }, never);
    await run(first, set);
    assert.match((await run(second, get)).stdout, /false/i);
    assert.match((await run(first, get)).stdout, /true/i);
    remove(first, second);
  });
}

test('a context has the folder and the variables that it was made with, also after a restart', async () => {
  const place = { cwd: '/usr', env: { GREETING: 'hi' } };
  const context = await contexts.create(BOX, { ...PYTHON, place }, never);
  const code = 'import os; print(os.getcwd(), os.environ["GREETING"], "kept" in globals()); kept = 1';
  assert.equal((await run(context, code)).stdout, '/usr hi False\n');
  assert.equal((await run(context, code)).stdout, '/usr hi True\n');
  await context.slot.restart();
  assert.deepEqual(await run(context, code), { ...SUCCESS, stdout: '/usr hi False\n' });
  remove(context);
});

for (const [language, codes] of [
  ['python', { value: '"a" * 3', error: 'raise ValueError("no")', name: 'ValueError' }],
  ['node', { value: '"a".repeat(3)', error: 'throw new TypeError("no")', name: 'TypeError' }],
] as const) {
  test(`a run tells its value and its exception apart from its output (${language})`, async () => {
    const context = await contexts.create(BOX, { ...PYTHON, language }, never);
    const { result, stdout, exception } = await run(context, codes.value);
    assert.deepEqual([result, stdout, exception], ["'aaa'", "'aaa'\n", null]);
    const failed = await run(context, codes.error);
    assert.deepEqual([failed.status, failed.result], ['error', null]);
    assert.deepEqual([failed.exception?.name, failed.exception?.message], [codes.name, 'no']);
    assert.equal(failed.exception?.traceback, failed.stderr);
    assert.match(failed.stderr, new RegExp(`${codes.name}: no`));
    assert.equal((await run(context, '')).exception, null, 'the exception of the run before');
    remove(context);
  });

  test(`output arrives while the code runs, characters whole (${language})`, async () => {
    const context = await contexts.create(BOX, { ...PYTHON, language }, never);
    // Goes on when the file is there, which the test makes after it has seen the first line.
    const file = `/tmp/svc-contexts-${process.pid}-${language}`;
    const code =
      language === 'python'
        ? `import os, time, sys\nsys.stdout.buffer.write("né".encode()[:2]); sys.stdout.buffer.flush(); print("go", file=sys.stderr, flush=True)\nwhile not os.path.exists("${file}"): time.sleep(0.01)\nos.remove("${file}"); sys.stdout.buffer.write("é".encode()[1:]); print()`
        : `const fs = require("fs"); fs.writeSync(1, Buffer.from("né").subarray(0, 2)); console.error("go"); while (!fs.existsSync("${file}")) await new Promise((r) => setTimeout(r, 10)); fs.unlinkSync("${file}"); fs.writeSync(1, Buffer.from("é").subarray(1)); console.log()`;
    const events = runEvents((listener) => context.run({ code, timeoutMs: 60_000, listener }, never));
    const seen: string[] = [];
    for await (const event of events) {
      if (event.kind === 'end') break;
      seen.push(`${event.kind} ${event.text}`);
      if (event.text.includes('go')) await writeFile(file, '');
    }
    const text = (kind: string) =>
      seen
        .filter((line) => line.startsWith(kind))
        .map((line) => line.slice(kind.length + 1))
        .join('');
    assert.deepEqual([text('stdout'), text('stderr')], ['né\n', 'go\n']);
    remove(context);
  });

  test(`an interruption ends the code and keeps the state (${language})`, async () => {
    const context = await contexts.create(BOX, { ...PYTHON, language }, never);
    await run(context, language === 'python' ? 'kept = 7' : 'var kept = 7');
    const loop =
      language === 'python' ? 'print("in", flush=True)\nwhile True: pass' : 'console.log("in"); for (;;);';
    const running = collect(
      runEvents((listener) => context.run({ code: loop, timeoutMs: 60_000, listener }, never)),
      async () => await context.slot.interrupt(),
    );
    const { status, stderr } = await running;
    assert.equal(status, 'interrupted');
    assert.match(stderr, /Interrupted on request; the state is kept/);
    assert.equal((await run(context, 'kept')).stdout, '7\n');
    remove(context);
  });
}

test('output that nobody reads is bounded and said to be missing', async () => {
  const context = await contexts.create(BOX, PYTHON, never);
  const code = 'for _ in range(20): print("z" * (1 << 20))';
  const events = runEvents((listener) => context.run({ code, timeoutMs: 60_000, listener }, never));
  // The next run begins when this one has ended, of which nothing was read.
  await run(context, '1');
  const { stdout, stderr, truncated } = await collect(events);
  assert.equal(truncated, true);
  assert.ok(stdout.length <= 8 << 20, String(stdout.length));
  assert.match(stderr, /output is missing here/);
  remove(context);
});

test('names and the number of contexts are bounded', async () => {
  const run = { sandboxId: 'full', runId: 'another' };
  const names = Array.from({ length: MAX_CODE_CONTEXTS }, (_, index) => `c${index}`);
  // The test sandbox lets one channel in at a time.
  for (const name of names.slice(0, 1)) await contexts.create(run, { ...PYTHON, name }, never);
  await refused(contexts.create(run, { ...PYTHON, name: 'c0' }, never), 'name_already_exists');
  assert.equal(contexts.require(run, 'c0').spec.name, 'c0');
  for (const name of names.slice(1)) await contexts.create(run, { ...PYTHON, name }, never);
  await refused(contexts.create(run, PYTHON, never), 'quota_exceeded');
  contexts.remove(contexts.require(run, 'c1'));
  const again = await contexts.create(run, { ...PYTHON, name: 'c1' }, never);
  assert.equal(contexts.list(run).at(-1), again);
  contexts.forget(run.sandboxId);
});

test('one that cannot start is not there', async () => {
  const place = { cwd: '/no/such/folder' };
  await refused(contexts.create(BOX, { ...PYTHON, name: 'bad', place }, never), 'exec_failed');
  assert.throws(() => contexts.require(BOX, 'bad'), isRefusal('context_not_found'));
});

test('code in a context that is removed ends with context_lost, and its id is unknown', async () => {
  const context = await contexts.create(BOX, PYTHON, never);
  const code = 'print("in", flush=True)\nimport time\nwhile True: time.sleep(1)';
  const events = runEvents((listener) => context.run({ code, timeoutMs: null, listener }, never));
  await refused(
    collect(events, () => {
      contexts.remove(context);
      return Promise.resolve();
    }),
    'context_lost',
  );
  assert.throws(() => contexts.require(BOX, context.id), isRefusal('context_not_found'));
});

test('an id of an earlier run or of another server is lost', async () => {
  const context = await contexts.create({ sandboxId: 'again', runId: 'one' }, PYTHON, never);
  const later = { sandboxId: 'again', runId: 'two' };
  assert.throws(() => contexts.require(later, context.id), isRefusal('context_lost'));
  assert.deepEqual(contexts.list(later), []);
  const restarted = new CodeContexts({ openChannel: (_id, signal) => sandbox.openChannel(signal), logger });
  assert.throws(() => restarted.require(BOX, context.id), isRefusal('context_lost'));
  assert.throws(() => restarted.require(BOX, 'name'), isRefusal('context_not_found'));
});

interface Collected extends RunEnd {
  readonly stdout: string;
  readonly stderr: string;
}

const SUCCESS = {
  status: 'success',
  result: null,
  exception: null,
  truncated: false,
  stdout: '',
  stderr: '',
};

async function run(context: CodeContext, code: string): Promise<Collected> {
  return await collect(runEvents((listener) => context.run({ code, timeoutMs: 60_000, listener }, never)));
}

async function collect(
  events: ReturnType<typeof runEvents>,
  atFirst: () => Promise<void> = () => Promise.resolve(),
): Promise<Collected> {
  const output = { stdout: '', stderr: '' };
  let isFirst = true;
  for await (const event of events) {
    if (event.kind === 'end') return { ...event.end, ...output };
    output[event.kind] += event.text;
    if (isFirst) await atFirst();
    isFirst = false;
  }
  throw new Error('no end');
}

function remove(...all: readonly CodeContext[]): void {
  for (const context of all) contexts.remove(context);
}

async function refused(work: Promise<unknown>, code: ErrorCode): Promise<void> {
  await assert.rejects(work, isRefusal(code));
}

function isRefusal(code: ErrorCode): (error: unknown) => boolean {
  return (error) => {
    assert.ok(PlatformError.is(error, code), String(error));
    return true;
  };
}
