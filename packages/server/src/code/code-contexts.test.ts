import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { PlatformError, type ErrorCode } from '@svc/contract';
import { MAX_CODE_CONTEXTS } from '@svc/contract/rest';
import { Sealer } from '../secrets/sealer.ts';
import type { Database } from '../store/database.ts';
import { openStore } from '../store/open-store.ts';
import { findOpenRun } from '../store/processes.ts';
import { closeRun, openRun } from '../store/runs.ts';
import { sqliteDialect } from '../store/sqlite.ts';
import { addSandbox } from '../testing/stored-sandbox.ts';
import { CodeContexts, type CodeContext, type ContextSpec, type SandboxRun } from './code-contexts.ts';
import { runEvents, type RunEnd } from './run-events.ts';
import { TestSandbox } from '../testing/code-sandbox.ts';

const logger = { debug: () => undefined };
const never = new AbortController().signal;
let sandbox: TestSandbox;
let contexts: CodeContexts;

let BOX: SandboxRun;
let database: Database;
let folder: string;

before(async () => {
  sandbox = await TestSandbox.start();
  folder = await mkdtemp(join(tmpdir(), 'svc-contexts-'));
  database = await openStore(sqliteDialect(join(folder, 'store.db')));
  contexts = startServer();
  BOX = await addRun('box');
});
after(async () => {
  contexts.close();
  await database.destroy();
  await sandbox.stop();
  await rm(folder, { recursive: true });
});

/** What a server of the store has of contexts. */
function startServer(): CodeContexts {
  const openChannel = (_id: string, signal: AbortSignal) => sandbox.openChannel(signal);
  const sealer = new Sealer([new Uint8Array(32).fill(7)]);
  return new CodeContexts({ openChannel, database, sealer, logger });
}

async function addRun(name: string): Promise<SandboxRun> {
  const spec = { image: { type: 'oci', reference: 'x' } } as const;
  const box = await addSandbox(database, { namespace: 'acme', name, spec, ports: [] });
  return await startAnew(box);
}

async function startAnew(box: Parameters<typeof openRun>[1]): Promise<SandboxRun> {
  await closeRun(database, box.id, new Date().toISOString(), 'stopped');
  await openRun(database, box, new Date(Date.now() + 1).toISOString());
  const run = await findOpenRun(database, box.id);
  assert.ok(run !== undefined);
  return { sandboxId: box.id, runId: run.id };
}

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
    await remove(first, second);
  });
}

test('a context has the folder and the variables that it was made with, also after a restart', async () => {
  const place = { cwd: '/usr', env: { GREETING: 'hi' } };
  const context = await contexts.create(BOX, { ...PYTHON, place }, never);
  const code = 'import os; print(os.getcwd(), os.environ["GREETING"], "kept" in globals()); kept = 1';
  assert.equal((await run(context, code)).stdout, '/usr hi False\n');
  assert.equal((await run(context, code)).stdout, '/usr hi True\n');
  await context.restart(never);
  assert.deepEqual(await run(context, code), { ...SUCCESS, stdout: '/usr hi False\n' });
  await remove(context);
});

for (const [language, codes] of [
  ['python', { value: '"a" * 3', error: 'raise ValueError("no")', name: 'ValueError' }],
  ['node', { value: '"a".repeat(3)', error: 'throw new TypeError("no")', name: 'TypeError' }],
] as const) {
  test(`a run reports its value and its exception separately from its output (${language})`, async () => {
    const context = await contexts.create(BOX, { ...PYTHON, language }, never);
    const { result, stdout, exception } = await run(context, codes.value);
    assert.deepEqual([result, stdout, exception], ["'aaa'", "'aaa'\n", null]);
    const failed = await run(context, codes.error);
    assert.deepEqual([failed.status, failed.result], ['error', null]);
    assert.deepEqual([failed.exception?.name, failed.exception?.message], [codes.name, 'no']);
    assert.equal(failed.exception?.traceback, failed.stderr);
    assert.match(failed.stderr, new RegExp(`${codes.name}: no`));
    assert.equal((await run(context, '')).exception, null, 'the exception of the run before');
    await remove(context);
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
      if (event.kind === 'result') continue;
      seen.push(`${event.kind} ${event.text}`);
      if (event.text.includes('go')) await writeFile(file, '');
    }
    const text = (kind: string) =>
      seen
        .filter((line) => line.startsWith(kind))
        .map((line) => line.slice(kind.length + 1))
        .join('');
    assert.deepEqual([text('stdout'), text('stderr')], ['né\n', 'go\n']);
    await remove(context);
  });

  test(`an interruption ends the code and keeps the state (${language})`, async () => {
    const context = await contexts.create(BOX, { ...PYTHON, language }, never);
    await run(context, language === 'python' ? 'kept = 7' : 'var kept = 7');
    const loop =
      language === 'python' ? 'print("in", flush=True)\nwhile True: pass' : 'console.log("in"); for (;;);';
    const running = collect(
      runEvents((listener) => context.run({ code: loop, timeoutMs: 60_000, listener }, never)),
      async () => await context.interrupt(never),
    );
    const { status, stderr } = await running;
    assert.equal(status, 'interrupted');
    assert.match(stderr, /Interrupted on request; the state is kept/);
    assert.equal((await run(context, 'kept')).stdout, '7\n');
    await remove(context);
  });
}

test('unread output is bounded, and what was dropped is reported', async () => {
  const context = await contexts.create(BOX, PYTHON, never);
  const code = 'for _ in range(20): print("z" * (1 << 20))';
  const events = runEvents((listener) => context.run({ code, timeoutMs: 60_000, listener }, never));
  // The next run begins when this one has ended, although its output was not read.
  await run(context, '1');
  const { stdout, stderr, truncated } = await collect(events);
  assert.equal(truncated, true);
  assert.ok(stdout.length <= 8 << 20, String(stdout.length));
  assert.match(stderr, /output is missing here/);
  await remove(context);
});

test('names and the number of contexts are bounded', async () => {
  const run = await addRun('full');
  const names = Array.from({ length: MAX_CODE_CONTEXTS }, (_, index) => `c${index}`);
  // The test sandbox lets one channel in at a time.
  for (const name of names.slice(0, 1)) await contexts.create(run, { ...PYTHON, name }, never);
  await refused(contexts.create(run, { ...PYTHON, name: 'c0' }, never), 'name_already_exists');
  assert.equal((await contexts.require(run, 'c0')).spec.name, 'c0');
  for (const name of names.slice(1)) await contexts.create(run, { ...PYTHON, name }, never);
  await refused(contexts.create(run, PYTHON, never), 'quota_exceeded');
  await contexts.remove(await contexts.require(run, 'c1'));
  const again = await contexts.create(run, { ...PYTHON, name: 'c1' }, never);
  const all = await contexts.list(run);
  assert.equal(all.at(-1), again);
  await remove(...all);
});

test('a context that cannot start is not listed', async () => {
  const place = { cwd: '/no/such/folder' };
  await refused(contexts.create(BOX, { ...PYTHON, name: 'bad', place }, never), 'exec_failed');
  await refused(contexts.require(BOX, 'bad'), 'context_not_found');
});

test('code in a context that is removed ends with context_lost, and its id is unknown', async () => {
  const context = await contexts.create(BOX, PYTHON, never);
  const code = 'print("in", flush=True)\nimport time\nwhile True: time.sleep(1)';
  const events = runEvents((listener) => context.run({ code, timeoutMs: null, listener }, never));
  await refused(
    collect(events, async () => await contexts.remove(context)),
    'context_lost',
  );
  await refused(contexts.require(BOX, context.id), 'context_not_found');
});

test('an id of an earlier run is lost, and its name is free', async () => {
  const spec = { image: { type: 'oci', reference: 'x' } } as const;
  const box = await addSandbox(database, { namespace: 'acme', name: 'again', spec, ports: [] });
  const first = await startAnew(box);
  const named = { ...PYTHON, name: 'mine' };
  const context = await contexts.create(first, named, never);
  const later = await startAnew(box);
  await refused(contexts.require(later, context.id), 'context_lost');
  await refused(contexts.require(later, 'mine'), 'context_not_found');
  assert.deepEqual(await contexts.list(later), []);
  await refused(contexts.create(first, PYTHON, never), 'sandbox_not_running');
  await remove(await contexts.create(later, named, never), context);
});

test('work that is repeated finds the context that it made, with its state', async () => {
  const named = { ...PYTHON, name: 'once' };
  const work = { id: 'ab'.repeat(16), isRepeat: false };
  const made = await contexts.create(BOX, named, never, work);
  await run(made, 'x = 5');
  const next = startServer();
  const again = await next.create(BOX, named, never, { ...work, isRepeat: true });
  assert.equal(again.id, made.id);
  assert.equal((await run(again, 'x')).stdout, '5\n');
  next.close();
  await remove(made);
});

for (const language of ['python', 'node'] as const)
  test(`runs are numbered by their interpreter, failed ones too: ${language}`, async () => {
    const context = await contexts.create(BOX, { ...PYTHON, language }, never);
    const numberOf = async (code: string) => {
      const request = { code, timeoutMs: 60_000 };
      for await (const event of runEvents((listener) => context.run({ ...request, listener }, never)))
        if (event.kind === 'end') return event.end.executionCount;
      throw new Error('no end');
    };
    assert.deepEqual([await numberOf('1'), await numberOf('no_such_name'), await numberOf('2')], [1, 2, 3]);
    await context.restart(never);
    assert.equal(await numberOf('1'), 1);
    await remove(context);
  });

interface Collected extends Omit<RunEnd, 'executionCount'> {
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
    if (event.kind === 'end') {
      const { executionCount: _count, ...end } = event.end;
      return { ...end, ...output };
    }
    if (event.kind === 'result') continue;
    output[event.kind] += event.text;
    if (isFirst) await atFirst();
    isFirst = false;
  }
  throw new Error('no end');
}

async function remove(...all: readonly CodeContext[]): Promise<void> {
  for (const context of all) await contexts.remove(context);
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
