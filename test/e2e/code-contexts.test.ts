import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { Client, Sandbox, SvcError, type SvcErrorCode } from '@svc/sdk';
import { importNode, importPython } from '../engine/interpreter-images.ts';
import { TestServer } from './start-server.ts';

let server: TestServer;
let client: Client;

before(async () => {
  server = await TestServer.start();
  await importPython(server.engine);
  await importNode(server.engine);
  client = new Client({ apiUrl: server.url, maxRetries: 0 });
});
after(() => server.destroy());

const CODES = {
  python: {
    set: 'kept = 41',
    get: 'kept + 1',
    where: 'import os; print(os.getcwd(), os.environ["GREETING"])',
    loop: 'print("in", flush=True)\nwhile True: pass',
    error: 'raise ValueError("no")',
    die: 'import os; os.kill(os.getpid(), 9)',
  },
  javascript: {
    set: 'var kept = 41',
    get: 'kept + 1',
    where: 'console.log(process.cwd(), process.env.GREETING)',
    loop: 'console.log("in"); for (;;);',
    error: 'throw new RangeError("no")',
    die: 'process.kill(process.pid, 9)',
  },
} as const;

const PLACES = [
  ['container', 'python', 'python'],
  ['container', 'javascript', 'node'],
  ['gvisor', 'python', 'python'],
] as const;

for (const [isolation, language, image] of PLACES) {
  const codes = CODES[language];
  describe(`code contexts of ${language} on ${isolation}`, { concurrency: false }, () => {
    let box: Sandbox;
    before(async () => {
      box = await Sandbox.create({ client, name: `${language}-${isolation}`, image, isolation });
    });
    after(() => box.remove());

    test('each keeps its own state, in its own place, beside the default one', async () => {
      const first = await box.contexts.create({ language, name: 'first' });
      const second = await box.contexts.create({ language, cwd: '/usr', env: { GREETING: 'hi' } });
      await first.runCode(codes.set);
      assert.equal((await first.runCode(codes.get)).result, '42');
      assert.equal((await second.runCode(codes.get)).status, 'error');
      assert.equal((await box.runCode(codes.get, { language })).status, 'error');
      assert.equal((await second.runCode(codes.where)).output, '/usr hi\n');
      assert.deepEqual(
        (await box.contexts.list()).map(({ id, name, info }) => [
          id,
          name,
          info.language,
          info.cwd,
          info.status,
        ]),
        [
          [first.id, 'first', language, null, 'idle'],
          [second.id, null, language, '/usr', 'idle'],
        ],
      );
      assert.equal((await box.runCode(codes.get, { context: 'first' })).result, '42');
      const { name, message } = (await first.runCode(codes.error)).exception ?? {};
      assert.deepEqual([name?.slice(-5), message], ['Error', 'no']);
      await second.remove();
      await refused(second.runCode('1'), 'context_not_found');
      await first.remove();
    });

    test('the default context is the one of JSON-RPC', async () => {
      await box.runCode(codes.set, { language });
      const params = { sandbox: box.name, namespace: 'default', language, code: codes.get };
      const namespace = await client.slug();
      const { result } = await server.call('sandbox.repl.run', { ...params, namespace });
      assert.equal((result as { readonly output: string }).output, '42\n');
    });

    test('interruption and timeout keep the state, a restart and a death do not', async () => {
      const context = await box.contexts.create({ language });
      await context.runCode(codes.set);
      let heard = '';
      const interrupted = await context.runCode(codes.loop, {
        onStdout: (text) => {
          heard += text;
          void context.interrupt();
        },
      });
      assert.deepEqual([interrupted.status, heard], ['interrupted', 'in\n']);
      const timedOut = await context.runCode(codes.loop, { timeoutMs: 500 });
      assert.equal(timedOut.status, 'timeout');
      assert.match(timedOut.error, /the state is kept/);
      assert.equal((await context.runCode(codes.get)).result, '42');
      await context.restart();
      const fresh = await context.runCode(codes.get);
      assert.equal(fresh.status, 'error');
      assert.doesNotMatch(fresh.error, /state is lost/);
      assert.match((await context.runCode(codes.die)).error, /killed by SIGKILL; its state is lost/);
      assert.equal((await context.runCode('1')).status, 'success');
      await context.remove();
    });

    test('a caller that disconnects interrupts its code', async () => {
      const context = await box.contexts.create({ language });
      await context.runCode(codes.set);
      const gone = new AbortController();
      const running = context.runCode(codes.loop, { signal: gone.signal, onStdout: () => gone.abort() });
      await refused(running, 'aborted');
      assert.equal((await context.runCode(codes.get)).result, '42');
      await context.remove();
    });
  });
}

describe('errors of missing code contexts', { concurrency: false }, () => {
  let box: Sandbox;
  before(async () => {
    box = await Sandbox.create({ client, name: 'refusals', image: 'python' });
  });
  after(() => box.remove());

  test('a language, a folder or a name that cannot be', async () => {
    await refused(box.contexts.create({ language: 'javascript' }), 'exec_failed');
    await refused(box.contexts.create({ language: 'python', cwd: '/nowhere' }), 'exec_failed');
    await refused(box.runCode('1', { language: 'javascript' }), 'exec_failed');
    const one = await box.contexts.create({ language: 'python', name: 'one' });
    await refused(box.contexts.create({ language: 'python', name: 'one' }), 'name_already_exists');
    await refused(box.runCode('1', { context: 'one', language: 'javascript' }), 'invalid_request');
    await refused(box.runCode('1', { language: 'python', kernel: 'ir' }), 'invalid_request');
    await refused(box.contexts.get('missing'), 'context_not_found');
    await one.remove();
  });

  test('a plain answer has everything at once, once per idempotency key', async () => {
    const { status, body } = await post({ language: 'python', code: 'n = 0' });
    assert.deepEqual([status, body.status], [200, 'success']);
    const count = { language: 'python', code: 'import sys; print("e", file=sys.stderr)\nn += 1; n' };
    const answers = [await post(count, 'key'), await post(count, 'key'), await post(count, 'other')];
    assert.deepEqual(
      answers.map(({ body: { result, stdout, stderr } }) => [result, stdout, stderr]),
      [
        ['1', '1\n', 'e\n'],
        ['1', '1\n', 'e\n'],
        ['2', '2\n', 'e\n'],
      ],
    );
    const big = await post({ language: 'python', code: 'print("z" * (3 << 20))' });
    assert.deepEqual([big.body.stdout?.length, big.body.truncated], [1 << 20, true]);
    const first = await post(count, 'stream', '/stream');
    assert.match(
      first.text,
      /event: stdout\ndata: {"text":"3\\n"}\n\n(.*\n)*event: end\ndata: {"status":"success"/,
    );
    const second = await post(count, 'stream', '/stream');
    // What was written to both outputs at once may come in either order.
    const eventsOf = ({ text }: { readonly text: string }) => text.split('\n\n').toSorted();
    assert.equal(second.status, 200);
    assert.deepEqual(eventsOf(second), eventsOf(first), 'the same stream from its beginning');
    const other = await post({ language: 'python', code: 'other' }, 'stream', '/stream');
    assert.deepEqual([other.status, other.body.error?.code], [409, 'idempotency_conflict']);
    assert.equal((await post({ language: 'python', code: 'n' })).body.result, '3');
  });

  test('one run has an environment of its own, and its last value is printed or not', async () => {
    const code = 'import os\nprint(os.environ.get("MODE"))\n1 + 1';
    const own = await post({ language: 'python', code, env: { MODE: 'fast' }, print_result: false });
    assert.deepEqual([own.body.stdout, own.body.result], ['fast\n', '2']);
    assert.deepEqual((await post({ language: 'python', code })).body.stdout, 'None\n2\n');
    const quiet = await box.runCode(code, { env: { MODE: 'slow' }, printResult: false });
    assert.deepEqual([quiet.output, quiet.result], ['slow\n', '2']);
    const kernel = await post({ kernel: 'python3', code: '1', env: { MODE: 'x' } });
    assert.deepEqual([kernel.status, kernel.body.error?.code], [400, 'invalid_request']);
  });

  test('contexts end with the run of their sandbox, and outlive the server', async () => {
    const before = await box.contexts.create({ language: 'python', name: 'mine' });
    let stopped: Promise<unknown> | undefined;
    const running = before.runCode('print("in", flush=True)\nimport time\nwhile True: time.sleep(1)', {
      onStdout: () => {
        stopped = box.stop();
      },
    });
    // Which of both it learns first is a matter of chance.
    await assert.rejects(
      running,
      (error) => SvcError.is(error, 'sandbox_not_running') || SvcError.is(error, 'unavailable'),
    );
    await stopped;
    await refused(before.runCode('1'), 'sandbox_not_running');
    assert.deepEqual(await box.contexts.list(), []);
    await box.start();
    await refused(before.runCode('1'), 'context_lost');
    const context = await box.contexts.create({ language: 'python', name: 'mine' });
    await context.runCode('x = 1');
    await server.kill();
    await server.launch();
    const again = await Sandbox.connect('refusals', { client: new Client({ apiUrl: server.url }) });
    assert.equal((await again.runCode('x', { context: context.id })).result, '1');
    const kept = await again.contexts.get('mine');
    assert.equal(kept.id, context.id);
    await kept.remove();
    assert.match((await again.runCode('1', { language: 'python' })).output, /1/);
    box = again;
  });
});

interface Body {
  readonly status?: string;
  readonly result?: string | null;
  readonly stdout?: string;
  readonly stderr?: string;
  readonly truncated?: boolean;
  readonly error?: { readonly code: string };
}

async function post(
  body: object,
  key?: string,
  more = '',
): Promise<{ readonly status: number; readonly text: string; readonly body: Body }> {
  const { id } = await Sandbox.connect('refusals', { client });
  const response = await fetch(`${server.url}/v1/sandboxes/${id}/code${more}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...(key === undefined ? {} : { 'idempotency-key': key }) },
    body: JSON.stringify(body),
  });
  const text = await response.text();
  return { status: response.status, text, body: text.startsWith('{') ? (JSON.parse(text) as Body) : {} };
}

async function refused(work: Promise<unknown>, code: SvcErrorCode): Promise<void> {
  await assert.rejects(work, (error) => {
    assert.ok(SvcError.is(error, code), String(error));
    return true;
  });
}
