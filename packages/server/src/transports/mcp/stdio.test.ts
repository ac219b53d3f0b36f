import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { resolve } from 'node:path';
import { text } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import { test, type TestContext } from 'node:test';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { signKey } from '../../access/signed-keys.ts';
import { FakeOrchestrator } from '../../testing/fake-orchestrator.ts';
import { freePort } from '../../testing/free-port.ts';
import { textOf } from '../../testing/mcp-client.ts';
import { makeFolder, startTestServer } from '../../testing/test-server.ts';
import { TOOL_LIST } from './tools.ts';

const SVC = resolve(import.meta.dirname, '../../../../../svc');
const PATH = process.env['PATH'] ?? '';
const START = { name: 'sandbox_start', arguments: { sandbox: 'one', config: { image: 'python' } } };

/** Starts do not end before something has happened. */
class HeldOrchestrator extends FakeOrchestrator {
  readonly #hold: () => Promise<unknown>;

  constructor(hold: () => Promise<unknown>) {
    super();
    this.#hold = hold;
  }

  override async create(
    ...request: Parameters<FakeOrchestrator['create']>
  ): ReturnType<FakeOrchestrator['create']> {
    const report = await super.create(...request);
    await this.#hold();
    return report;
  }
}

test('svc mcp lists and calls the tools of a running server', async (t) => {
  // This client drops notifications that arrive together with the result.
  const hasStarted = Promise.withResolvers<void>();
  const { url } = await startTestServer(t, { orchestrator: new HeldOrchestrator(() => hasStarted.promise) });
  const client = await connect(t, { SVC_API_URL: url });
  assert.equal((await client.listTools()).tools.length, TOOL_LIST.length);
  const started = await client.callTool(START, undefined, {
    onprogress: ({ message }) => {
      if (message === 'starting the sandbox') hasStarted.resolve();
    },
  });
  assert.equal(textOf(started), 'Sandbox one started successfully');
  assert.equal((await client.listPrompts()).prompts.length, 2);
  await client.ping();
});

test('svc mcp sends the key from SVC_API_KEY, and says what to do without one', async (t) => {
  const signingKey = randomBytes(32);
  const { url } = await startTestServer(t, { signingKey });
  const key = await signKey(signingKey, { namespace: 'team', createdAt: new Date(), expiresAt: null });
  await assert.rejects(connect(t, { SVC_API_URL: url }), /Authentication required: set SVC_API_KEY/);
  const client = await connect(t, { SVC_API_URL: url, SVC_API_KEY: key });
  const denied = await client.callTool(START);
  assert.match(JSON.stringify(denied.content), /Access denied to namespace 'default'/);
});

test('svc mcp says so when no server answers', async (t) => {
  await assert.rejects(
    connect(t, { SVC_API_URL: 'http://127.0.0.1:1' }),
    /no server answers at http:\/\/127\.0\.0\.1:1.*svc server start/,
  );
});

test('svc mcp answers all that was written before its input ended', async (t) => {
  const { url } = await startTestServer(t, { orchestrator: new HeldOrchestrator(() => delay(100)) });
  const clientInfo = { name: 'pipe', version: '1' };
  const open = { protocolVersion: '2025-06-18', capabilities: {}, clientInfo };
  const messages = [
    { jsonrpc: '2.0', id: 1, method: 'initialize', params: open },
    { jsonrpc: '2.0', method: 'notifications/initialized' },
    { jsonrpc: '2.0', id: 2, method: 'tools/call', params: START },
  ];
  const child = spawn(SVC, ['mcp'], {
    env: { PATH, SVC_API_URL: url },
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  child.stdin.end(messages.map((message) => `${JSON.stringify(message)}\n`).join(''));
  const answers = (await text(child.stdout)).trim().split('\n');
  const last = answers.map((line) => JSON.parse(line)).find(({ id }) => id === 2);
  assert.equal(textOf(last?.result), 'Sandbox one started successfully');
});

test('svc mcp goes on after a restart of the server', async (t) => {
  const folder = await makeFolder(t);
  const port = await freePort();
  const first = await startTestServer(t, { folder, port });
  const client = await connect(t, { SVC_API_URL: first.url });
  await client.listTools();
  const { orchestrator } = first;
  await first.close();
  await assert.rejects(client.callTool(START), /no server answers/);
  await startTestServer(t, { folder, orchestrator, port });
  const started = await client.callTool(START);
  assert.equal(textOf(started), 'Sandbox one started successfully');
});

test('svc mcp writes nothing but protocol and ends with its input', async (t) => {
  const { url } = await startTestServer(t);
  const child = spawn(SVC, ['mcp', '--url', `${url}/`], { env: { PATH }, stdio: ['pipe', 'pipe', 'pipe'] });
  t.after(() => child.kill('SIGKILL'));
  const output = text(child.stdout);
  child.stdin.end('this is no message\n{"jsonrpc":"2.0","id":1,"method":"ping"}\n');
  const [code] = (await once(child, 'exit')) as [number | null];
  for (const line of (await output)
    .trim()
    .split('\n')
    .filter((word) => word !== '')) {
    assert.equal((JSON.parse(line) as { jsonrpc: string }).jsonrpc, '2.0');
  }
  assert.equal(code, 0);
});

test('svc mcp refuses an address that is none', async () => {
  const child = spawn(SVC, ['mcp', '--url', 'localhost'], {
    env: { PATH },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const exited = once(child, 'exit');
  const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr)]);
  assert.equal(stdout, '');
  assert.match(stderr, /must be like http:\/\/127\.0\.0\.1:5555, not 'localhost'/);
  assert.deepEqual(await exited, [2, null]);
});

async function connect(t: TestContext, env: Readonly<Record<string, string>>): Promise<Client> {
  const client = new Client({ name: 'test', version: '1' });
  const transport = new StdioClientTransport({
    command: SVC,
    args: ['mcp'],
    env: { PATH, ...env },
    stderr: 'ignore',
  });
  t.after(() => client.close());
  await client.connect(transport);
  return client;
}
