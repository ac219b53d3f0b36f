import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { startTestServer } from '../../testing/test-server.ts';

const METHODS = ['sandbox.start', 'sandbox.stop', 'sandbox.metrics.get', 'sandbox.repl.run'];
const FIELDS = [
  'sandbox',
  'namespace',
  'config',
  'language',
  'code',
  'timeout',
  '__proto__',
  'constructor',
  'x',
];

const value = fc.jsonValue({ maxDepth: 3 });
const params = fc.oneof(value, fc.dictionary(fc.constantFrom(...FIELDS), value));
const request = fc.record(
  {
    jsonrpc: fc.oneof({ weight: 9, arbitrary: fc.constant('2.0') }, value),
    method: fc.oneof({ weight: 5, arbitrary: fc.constantFrom(...METHODS) }, fc.string(), value),
    params,
    id: value,
  },
  { requiredKeys: [] },
);
const body = fc.oneof(
  fc.uint8Array({ maxLength: 200 }),
  fc.string({ unit: 'binary' }).map((text) => Buffer.from(text)),
  fc
    .oneof(value, request, fc.array(request, { maxLength: 5 }))
    .map((json) => Buffer.from(JSON.stringify(json))),
);
const header = fc.constantFrom(
  'application/json',
  'application/json; charset=utf-16',
  'text/plain',
  'application/json,',
);

test('arbitrary bytes get a JSON-RPC envelope, never a 500, and the server keeps running', async (t) => {
  const server = await startTestServer(t);
  await fc.assert(
    fc.asyncProperty(body, header, fc.constantFrom('', '/legacy'), async (bytes, contentType, prefix) => {
      const response = await fetch(`${server.url}${prefix}/api/v1/rpc`, {
        method: 'POST',
        headers: { 'content-type': contentType },
        body: new Uint8Array(bytes),
        signal: AbortSignal.timeout(60_000),
      });
      const text = await response.text();
      assert.ok(response.status < 500, `${response.status} ${text}`);
      if (response.status === 204) return assert.equal(text, '');
      for (const answer of [JSON.parse(text) as unknown].flat()) {
        const { jsonrpc, ...rest } = answer as Record<string, unknown>;
        assert.equal(jsonrpc, '2.0');
        assert.notEqual('result' in rest, 'error' in rest);
        if ('error' in rest)
          assert.deepEqual(Object.keys(rest['error'] as object), ['code', 'message', 'data']);
      }
    }),
    { numRuns: 500 },
  );
  assert.equal((await server.call('sandbox.metrics.get', {})).error, undefined);
});

test('a deeply nested body is answered', async (t) => {
  const server = await startTestServer(t);
  const depth = 100_000;
  const nested = `${'['.repeat(depth)}${']'.repeat(depth)}`;
  const { body: alone } = await server.post(nested);
  assert.partialDeepStrictEqual(alone.error, { code: -32_600, data: { field: 'body' } });
  const { body: answer } = await server.post(
    `{"jsonrpc":"2.0","method":"sandbox.start","params":{"sandbox":"a","config":${nested}},"id":1}`,
  );
  assert.partialDeepStrictEqual(answer.error, { code: -32_600, data: { field: 'body' } });
});
