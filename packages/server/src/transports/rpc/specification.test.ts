import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { startTestServer } from '../../testing/test-server.ts';

/** The examples of https://www.jsonrpc.org/specification §7, with our methods. */
const METRICS = { jsonrpc: '2.0', method: 'sandbox.metrics.get', params: { namespace: 'none' } };
const METRICS_RESULT = { jsonrpc: '2.0', result: { sandboxes: [] } };
const isError = (answer: unknown, code: number, id: unknown) => {
  const { error, ...rest } = answer as { error: { code: number } };
  assert.equal(error.code, code);
  assert.deepEqual(rest, { jsonrpc: '2.0', id });
};

async function ask(t: TestContext, body: unknown) {
  return await (await startTestServer(t)).post(body);
}

test('a call is answered with its result and the id it had', async (t) => {
  const { status, body } = await ask(t, { ...METRICS, id: 3 });
  assert.equal(status, 200);
  assert.deepEqual(body, { ...METRICS_RESULT, id: 3 });
});

test('an id comes back with its type: string, number, fraction, null, empty', async (t) => {
  const server = await startTestServer(t);
  for (const id of ['1', 1, 0, -1, 1.5, null, '', 'ü\u{1f600}']) {
    const { body } = await server.post({ ...METRICS, id });
    assert.deepEqual(body, { ...METRICS_RESULT, id });
  }
});

test('an id of another type is an invalid request', async (t) => {
  const server = await startTestServer(t);
  for (const id of [{}, [], true]) isError((await server.post({ ...METRICS, id })).body, -32_600, null);
});

test('a lone request without an id is answered, without an id', async (t) => {
  const { status, body } = await ask(t, METRICS);
  assert.equal(status, 200);
  assert.deepEqual(body, METRICS_RESULT);
});

test('a success has no key named error, and a failure none named result', async (t) => {
  const server = await startTestServer(t);
  assert.ok(!('error' in (await server.post({ ...METRICS, id: 1 })).body));
  assert.ok(!('result' in (await server.post({ ...METRICS, method: 'nope', id: 1 })).body));
});

test('a method that does not exist is -32601 and is named', async (t) => {
  const { body } = await ask(t, { jsonrpc: '2.0', method: 'foobar', id: '1' });
  isError(body, -32_601, '1');
  assert.equal(body.error?.message, 'Method not found: foobar');
});

test('a body that is no JSON is -32700 with status 400', async (t) => {
  const server = await startTestServer(t);
  for (const text of [
    '{"jsonrpc": "2.0", "method": "foobar, "params": "bar", "baz]',
    '',
    '{',
    'nul',
    '[{"jsonrpc"]',
  ]) {
    const { status, body } = await server.post(text);
    assert.equal(status, 400, text);
    assert.equal(body.error?.message, 'Parse error');
    isError(body, -32_700, null);
  }
});

test('a request object that is none is -32600', async (t) => {
  const server = await startTestServer(t);
  for (const value of [{ jsonrpc: '2.0', method: 1, params: 'bar' }, 1, 'text', null, true, {}]) {
    const { status, body } = await server.post(JSON.stringify(value));
    assert.equal(status, 200);
    isError(body, -32_600, null);
  }
});

test('a missing or wrong version is said so', async (t) => {
  const server = await startTestServer(t);
  for (const jsonrpc of [undefined, '1.0', 2, null]) {
    const { body } = await server.post({ ...METRICS, jsonrpc, id: 7 });
    isError(body, -32_600, 7);
    assert.equal(body.error?.message, 'Invalid or missing jsonrpc version field');
  }
});

test('an empty batch is one invalid request', async (t) => {
  isError((await ask(t, [])).body, -32_600, null);
});

test('a batch of things that are no requests is answered one by one', async (t) => {
  const { status, body } = await ask(t, [1, 2, 3]);
  assert.equal(status, 200);
  const answers = body as unknown as unknown[];
  assert.equal(answers.length, 3);
  for (const answer of answers) isError(answer, -32_600, null);
});

test('a mixed batch answers calls in their order and leaves out notifications', async (t) => {
  const { body } = await ask(t, [
    { ...METRICS, id: '1' },
    METRICS,
    { ...METRICS, id: '2' },
    { foo: 'boo' },
    { jsonrpc: '2.0', method: 'foo.get', params: { name: 'myself' }, id: '5' },
    { ...METRICS, id: '9' },
  ]);
  const [one, two, invalid, missing, nine, ...more] = body as unknown as unknown[];
  assert.deepEqual(
    [one, two, nine],
    ['1', '2', '9'].map((id) => ({ ...METRICS_RESULT, id })),
  );
  isError(invalid, -32_600, null);
  isError(missing, -32_601, '5');
  assert.deepEqual(more, []);
});

test('a batch of notifications only is done and not answered', async (t) => {
  const server = await startTestServer(t);
  const start = { jsonrpc: '2.0', method: 'sandbox.start', params: { sandbox: 'a', config: { image: 'x' } } };
  const { status, body } = await server.post([start, METRICS]);
  assert.equal(status, 204);
  assert.deepEqual(body, {});
  assert.equal((await server.orchestrator.list())[0]?.state, 'running');
});

test('a batch may start a sandbox, use it and stop it', async (t) => {
  const server = await startTestServer(t);
  const step = (method: string, params: object, id: number) => ({ jsonrpc: '2.0', method, params, id });
  const { body } = await server.post([
    step('sandbox.start', { sandbox: 'a', config: { image: 'x' } }, 1),
    step('sandbox.command.run', { sandbox: 'a', command: 'echo', args: ['hi'] }, 2),
    step('sandbox.stop', { sandbox: 'a' }, 3),
  ]);
  const answers = body as unknown as { result: unknown }[];
  assert.equal(answers[0]?.result, 'Sandbox a started successfully');
  assert.partialDeepStrictEqual(answers[1]?.result, { output: 'hi\n' });
  assert.equal(answers[2]?.result, 'Sandbox a stopped successfully');
});

test('a batch holds at most 100 calls', async (t) => {
  const server = await startTestServer(t);
  const batch = (size: number) => Array.from({ length: size }, (_, id) => ({ ...METRICS, id }));
  assert.equal(((await server.post(batch(100))).body as unknown as unknown[]).length, 100);
  isError((await server.post(batch(101))).body, -32_600, null);
});

test('params by position are refused and say what is wanted', async (t) => {
  const { body } = await ask(t, { ...METRICS, params: ['none'], id: 1 });
  isError(body, -32_602, 1);
  assert.deepEqual(body.error?.data, { field: 'params', reason: 'must be object' });
});
