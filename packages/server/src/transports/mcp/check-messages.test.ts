import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ResultSchema, type McpError } from '@modelcontextprotocol/sdk/types.js';
import { startTestServer } from '../../testing/test-server.ts';
import { connectClient } from '../../testing/mcp-client.ts';
import { TOOL_LIST } from './tools.ts';

const START = { name: 'sandbox_start', arguments: {} };

test('wrong parameters are answered -32602 with a sentence that names the field', async (t) => {
  const { url } = await startTestServer(t);
  const { client } = await connectClient(t, url);
  const cases = [
    ['tools/call', {}, 'name is missing'],
    ['tools/call', { name: 5 }, 'name must be a string'],
    ['tools/call', { name: 'sandbox_start', arguments: [1] }, 'arguments must be an object'],
    ['tools/call', { ...START, _meta: { progressToken: {} } }, /^_meta\.progressToken must be/],
    ['tools/call', undefined, 'params is missing'],
    ['prompts/get', {}, 'name is missing'],
    [
      'prompts/get',
      { name: 'create_python_sandbox', arguments: { namespace: 1 } },
      'arguments.namespace must be a string',
    ],
    ['logging/setLevel', { level: 'loud' }, /^level must be one of debug, info,/],
    ['tools/list', { cursor: 7 }, 'cursor must be a string'],
    ['initialize', { protocolVersion: 1 }, 'protocolVersion must be a string'],
  ] as const;
  for (const [method, params, sentence] of cases) {
    const error = await client.request({ method, params: params as never }, ResultSchema).then(
      () => assert.fail(`${method} was accepted`),
      (reason: unknown) => reason as McpError,
    );
    const message = error.message.replace(/^MCP error -?\d+: /, '');
    assert.equal(error.code, -32_602, message);
    const reason = message.replace(/^Invalid params: /, '');
    if (typeof sentence === 'string') assert.equal(reason, sentence);
    else assert.match(reason, sentence);
    assert.doesNotMatch(message, /[[{\n]/, 'nothing of the validator shows');
  }
  // The session goes on.
  assert.equal((await client.listTools()).tools.length, TOOL_LIST.length);
});

test('an invalid initialize gets a reason, and a batch runs nothing', async (t) => {
  const server = await startTestServer(t);
  const { url } = server;
  const headers = { accept: 'application/json, text/event-stream' };
  const begin = { jsonrpc: '2.0', id: 1, method: 'initialize', params: { protocolVersion: '2025-06-18' } };
  const refused = await server.post(begin, { path: '/mcp', headers });
  assert.equal(refused.status, 200);
  assert.deepEqual(refused.body, {
    jsonrpc: '2.0',
    error: {
      code: -32_602,
      message: 'Invalid params: capabilities is missing',
      data: { field: 'capabilities', reason: 'is missing' },
    },
    id: 1,
  });

  const { client, transport } = await connectClient(t, url);
  const good = { sandbox: 'one', config: { image: 'python' } };
  const batch = [
    { jsonrpc: '2.0', id: 'a', method: 'tools/call', params: { name: 'sandbox_start', arguments: good } },
    { jsonrpc: '2.0', method: 'notifications/initialized' },
    { jsonrpc: '2.0', id: 'b', method: 'tools/call', params: { name: 1 } },
  ];
  const session = { ...headers, 'mcp-session-id': transport.sessionId ?? '' };
  const { body } = await server.post(batch, { path: '/mcp', headers: session });
  const answers = body as unknown as { id: string; error: { code: number; message: string } }[];
  assert.deepEqual(
    answers.map(({ id, error }) => [id, error.code, error.message]),
    [
      ['a', -32_600, 'Not run: another message of this batch is invalid'],
      ['b', -32_602, 'Invalid params: name must be a string'],
    ],
  );
  const { structuredContent } = await client.callTool({ name: 'sandbox_get_metrics', arguments: {} });
  assert.deepEqual(structuredContent, { sandboxes: [] });
});
