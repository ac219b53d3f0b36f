import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test, type TestContext } from 'node:test';
import { waitUntil } from '@svc/contract/testing';
import { Client, SvcError, type ClientOptions } from '@svc/sdk';
import { WebSocketServer, type WebSocket } from 'ws';
import { CodeRuns } from '../../packages/sdk/src/sandbox/code-runs.ts';
import { runCode, type RunCodeOptions } from '../../packages/sdk/src/sandbox/run-code.ts';

interface Message {
  readonly id: number;
  readonly run?: { readonly code: string };
  readonly again?: { readonly connection: string; readonly id: number };
  readonly cancel?: boolean;
}

interface RunRequest {
  readonly message: Message;
  readonly socket: WebSocket;
  readonly send: (event: string, data?: unknown) => void;
}

const END = { status: 'success', result: null, exception: null, truncated: false };

/** A server whose connections for code say what `answer` says; nothing else is there. */
async function startRuns(
  t: TestContext,
  answer: (request: RunRequest) => void,
  options: ClientOptions = {},
): Promise<{
  readonly messages: Message[];
  readonly runs: CodeRuns;
  readonly run: (code: string, options?: RunCodeOptions) => ReturnType<typeof runCode>;
  readonly connections: () => number;
}> {
  const server = new WebSocketServer({ port: 0, host: '127.0.0.1' });
  const messages: Message[] = [];
  let connections = 0;
  server.on('connection', (socket) => {
    connections += 1;
    socket.send(Buffer.from(`{"connection":"c${connections}"}\n`));
    socket.on('message', (data: Buffer) => {
      const message = JSON.parse(data.toString()) as Message;
      messages.push(message);
      const send = (event: string, data: unknown = {}) =>
        socket.send(Buffer.from(`${JSON.stringify({ id: message.id, event, data })}\n`));
      if (message.run !== undefined) answer({ message, socket, send });
    });
  });
  await once(server, 'listening');
  t.after(() => {
    for (const socket of server.clients) socket.terminate();
    server.close();
  });
  const apiUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const runs = new CodeRuns(new Client({ apiUrl, apiKey: 'svc_key', ...options }), 'x');
  const run = (code: string, more: RunCodeOptions = {}) =>
    runCode(runs, code, { language: 'python', ...more });
  return { messages, runs, run, connections: () => connections };
}

test('runs at once share a connection, and each has its own output', async (t) => {
  const waiting: RunRequest[] = [];
  const { run, connections } = await startRuns(t, (request) => waiting.push(request));
  const both = Promise.all([run('a'), run('b')]);
  await waitUntil(() => waiting.length === 2);
  for (const { message, send } of waiting.toReversed()) {
    send('stdout', { text: `${message.run?.code} says\n` });
    send('end', END);
  }
  assert.deepEqual(
    (await both).map(({ output }) => output),
    ['a says\n', 'b says\n'],
  );
  assert.equal(connections(), 1);
});

test('messages are read when they arrive in pieces and when they arrive together', async (t) => {
  const { run } = await startRuns(t, ({ message: { id }, socket }) => {
    const text = `${JSON.stringify({ id, event: 'stdout', data: { text: 'größer' } })}\n${JSON.stringify({ id, event: 'end', data: END })}\n`;
    for (const byte of Buffer.from(text)) socket.send(Buffer.of(byte));
  });
  assert.equal((await run('x')).output, 'größer');
});

test('a connection that breaks before a word of a run is opened anew, and the run asked for by its name', async (t) => {
  const { run, messages } = await startRuns(t, ({ message, socket, send }) => {
    if (message.again === undefined) return socket.terminate();
    return send('end', END);
  });
  assert.equal((await run('x')).status, 'success');
  assert.deepEqual(
    messages.filter((message) => message.run !== undefined).map(({ id, again }) => [id, again]),
    [
      [1, undefined],
      [1, { connection: 'c1', id: 1 }],
    ],
  );
});

test('a run that breaks twice is requested again by its first id', async (t) => {
  let cuts = 0;
  const { run, messages } = await startRuns(t, ({ socket, send }) => {
    cuts += 1;
    if (cuts < 3) return socket.terminate();
    return send('end', END);
  });
  await run('x');
  assert.deepEqual(messages.at(-1)?.again, { connection: 'c1', id: 1 });
});

test('a run that has sent output is not requested again', async (t) => {
  const { run, messages } = await startRuns(t, ({ socket, send }) => {
    send('stdout', { text: 'half' });
    socket.close(1001, 'the server is shutting down');
  });
  await assert.rejects(run('x'), {
    code: 'connection_failed',
    message: 'The connection broke while the code ran; it was interrupted',
  });
  assert.equal(messages.length, 1);
});

test('a refusal that passes is asked again as something new, any other fails at once', async (t) => {
  const refusals = [
    { status: 429, error: { code: 'rate_limited', message: 'busy', details: { retry_after_seconds: 0 } } },
    { status: 400, error: { code: 'invalid_request', message: 'no', details: { field: 'language' } } },
  ];
  const { run, messages } = await startRuns(t, ({ send }) => send('refused', refusals.shift()));
  await assert.rejects(run('x'), (error) => {
    assert.ok(SvcError.is(error, 'invalid_request'));
    assert.deepEqual([error.status, error.details], [400, { field: 'language' }]);
    return true;
  });
  assert.deepEqual(
    messages.map(({ id, again }) => [id, again]),
    [
      [1, undefined],
      [2, undefined],
    ],
  );
});

test('a signal that aborts cancels the run, and so does a listener that throws; the connection stays', async (t) => {
  const { run, messages, connections } = await startRuns(t, ({ message, send }) => {
    if (message.run?.code === 'talk') send('stdout', { text: 'hi' });
    else if (message.run?.code === 'end') send('end', END);
  });
  const leave = new AbortController();
  const running = run('silent', { signal: leave.signal });
  await waitUntil(() => messages.length === 1);
  leave.abort(new Error('enough'));
  await assert.rejects(running, { code: 'aborted' });
  const thrown = new TypeError('of the listener');
  const onStdout = () => {
    throw thrown;
  };
  await assert.rejects(run('talk', { onStdout }), (error) => error === thrown);
  assert.equal((await run('end')).status, 'success');
  const cancelled = messages.filter(({ cancel }) => cancel === true).map(({ id }) => id);
  assert.deepEqual([cancelled, connections()], [[1, 2], 1]);
});

test('a server that says nothing has as long as any call; code that has begun takes as long as it likes', async (t) => {
  const { run } = await startRuns(
    t,
    ({ message, send }) => {
      if (message.run?.code !== 'long') return;
      send('begun');
      setTimeout(() => send('end', END), 800);
    },
    { timeoutMs: 400 },
  );
  assert.equal((await run('long')).status, 'success');
  await assert.rejects(run('silent'), { code: 'timeout' });
});

test('closing it while code runs fails the run; a run that ends has its outcome', async (t) => {
  const waiting: RunRequest[] = [];
  const { run, runs, connections } = await startRuns(t, (request) => waiting.push(request));
  const kept = run('a');
  await waitUntil(() => waiting.length === 1);
  runs.closeWhenIdle();
  const later = run('b', { signal: AbortSignal.timeout(60_000) });
  await waitUntil(() => waiting.length === 2);
  waiting[0]?.send('end', END);
  assert.equal((await kept).status, 'success');
  await waitUntil(() => waiting[0]?.socket.readyState === 3, 'the first connection is closed');
  waiting[1]?.send('stdout', { text: 'x' });
  waiting[1]?.send('end', END);
  assert.equal((await later).output, 'x');
  assert.equal(connections(), 2);
  const heard = Promise.withResolvers<string>();
  const cut = run('c', { onStdout: heard.resolve });
  await waitUntil(() => waiting.length === 3);
  waiting[2]?.send('stdout', { text: 'half' });
  assert.equal(await heard.promise, 'half');
  runs.close();
  await assert.rejects(cut, { code: 'connection_failed' });
  const silent = run('d');
  await waitUntil(() => waiting.length === 4);
  runs.close();
  await assert.rejects(silent, { code: 'connection_failed', message: 'The connection was closed' });
  const early = run('e');
  runs.close();
  await assert.rejects(early, { code: 'connection_failed' });
  assert.equal(waiting.length, 4);
});

test('a server that opens a connection and does not speak is left, and asked by a request', async (t) => {
  const asked: string[] = [];
  const server = createServer((request, response) => {
    asked.push(`${request.method} ${request.url}`);
    request.resume();
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.end(`event: end\ndata: ${JSON.stringify(END)}\n\n`);
  });
  const mute = new WebSocketServer({ server });
  const left = new Promise<void>((resolve) => {
    mute.on('connection', (socket) => void socket.on('close', () => resolve()));
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  t.after(() => {
    for (const socket of mute.clients) socket.terminate();
    server.closeAllConnections();
    server.close();
  });
  const apiUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const runs = new CodeRuns(new Client({ apiUrl, apiKey: 'svc_key' }), 'x', { openMs: 200 });
  assert.equal((await runCode(runs, '1', { language: 'python' })).status, 'success');
  assert.deepEqual(asked, ['POST /v1/sandboxes/x/code/stream']);
  await left;
});

for (const [what, said] of [
  ['that is none', '{"id":1,"event"\n'],
  ['that never ends', ' '.repeat(17 * 1024 * 1024)],
] as const)
  test(`a line ${what} ends the connection`, async (t) => {
    const { run } = await startRuns(t, ({ socket }) => socket.send(Buffer.from(said)), { maxRetries: 0 });
    await assert.rejects(run('x'), (error) => SvcError.is(error) && /connection|endless/.test(error.message));
  });
