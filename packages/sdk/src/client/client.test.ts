import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import { CodeRuns } from '../sandbox/code-runs.ts';
import { runCode } from '../sandbox/run-code.ts';
import { Client } from './client.ts';
import { SvcError } from '../svc-error.ts';

interface Seen {
  readonly url: string;
  readonly method: string;
  readonly headers: Headers;
  readonly body: string;
}

/** A client of a server that gives these answers one after the other, the last one for ever. */
function clientOf(
  answers: readonly (() => Response | Promise<Response>)[],
  options: { readonly organization?: string; readonly timeoutMs?: number } = {},
): { readonly client: Client; readonly seen: Seen[] } {
  const seen: Seen[] = [];
  const fetch = async (url: string | URL | Request, init: RequestInit = {}): Promise<Response> => {
    const body = init.body === undefined || init.body === null ? '' : await new Response(init.body).text();
    seen.push({
      url: url instanceof Request ? url.url : url.toString(),
      method: init.method ?? '',
      headers: new Headers(init.headers),
      body,
    });
    const answer = answers[Math.min(seen.length, answers.length) - 1];
    const aborted = new Promise<never>((_, reject) => {
      init.signal?.addEventListener('abort', () => reject(init.signal?.reason as Error));
    });
    return await Promise.race([Promise.resolve(answer?.() ?? Response.error()), aborted]);
  };
  const client = new Client({ apiUrl: 'http://server.test/', apiKey: 'svc_key', fetch, ...options });
  return { client, seen };
}

const okay = (body: unknown) => () => Response.json(body);
const failing =
  (status: number, code: string, headers: Record<string, string> = {}) =>
  () =>
    Response.json({ error: { code, message: 'a sentence', details: { field: 'x' } } }, { status, headers });
const broken = () =>
  Promise.reject(new TypeError('fetch failed', { cause: new Error('connect ECONNREFUSED') }));
const never = () => new Promise<Response>(() => undefined);

const VOLUME = { name: 'data' };

test('an operation goes where the table says, with its parts and the credential', async () => {
  const { client, seen } = clientOf([okay({})]);
  await client.call('snapshots.getByName', { params: { name: 'a b/c' } });
  await client.call('sandboxes.list', { query: { limit: 5, labels: '{"a":"b"}' } });
  await client.call('volumeFiles.stat', { params: { id: 'v' }, headers: { 'x-svc-file-path': 'YQ' } });
  assert.deepEqual(
    seen.map(({ method, url }) => `${method} ${url}`),
    [
      'GET http://server.test/v1/snapshots/by-name/a%20b%2Fc',
      'GET http://server.test/v1/sandboxes?limit=5&labels=%7B%22a%22%3A%22b%22%7D',
      'GET http://server.test/v1/volumes/v/files/stat',
    ],
  );
  assert.equal(seen[2]?.headers.get('x-svc-file-path'), 'YQ');
  assert.ok(seen.every(({ headers }) => headers.get('authorization') === 'Bearer svc_key'));
});

test('with an organization, calls go below its path', async () => {
  const { client, seen } = clientOf([okay({})], { organization: 'acme' });
  await client.call('sandboxes.create', { body: { name: 'x' } });
  await client.call('apiKeys.list', {});
  await client.call('users.get', {});
  await client.call('organizations.get', {}, { organization: 'other' });
  assert.deepEqual(
    seen.map(({ url }) => url.replace('http://server.test/v1', '')),
    ['/orgs/acme/sandboxes', '/orgs/acme/api-keys', '/users/me', '/orgs/other'],
  );
  const { client: keyed } = clientOf([okay({})]);
  await assert.rejects(keyed.call('apiKeys.list', {}), (error) => SvcError.is(error, 'invalid_request'));
});

test('a change that fails for a passing reason is repeated under one idempotency key', async () => {
  const notRead = failing(408, 'invalid_request');
  const { client, seen } = clientOf([broken, notRead, failing(503, 'unavailable'), okay({ id: '1' })]);
  assert.deepEqual(await client.call('volumes.create', { body: VOLUME }), { id: '1' });
  assert.equal(seen.length, 4);
  const keys = new Set(seen.map(({ headers }) => headers.get('idempotency-key')));
  assert.equal(keys.size, 1);
  assert.match([...keys][0] ?? '', /^[0-9a-f]{32}$/);
  assert.ok(seen.every(({ body }) => body === JSON.stringify(VOLUME)));
  await client.call('volumes.create', { body: VOLUME });
  assert.equal(keys.has(seen[4]?.headers.get('idempotency-key') ?? ''), false);
});

test('a permanent failure is not retried, and its error has everything from the answer', async () => {
  const { client, seen } = clientOf([failing(429, 'quota_exceeded', { 'x-request-id': 'r1' })]);
  await assert.rejects(client.call('volumes.create', { body: VOLUME }), (error) => {
    assert.ok(SvcError.is(error, 'quota_exceeded'));
    assert.deepEqual([error.status, error.message, error.requestId], [429, 'a sentence', 'r1']);
    assert.deepEqual(error.details, { field: 'x' });
    return true;
  });
  assert.equal(seen.length, 1);
});

test('repetitions end after a few', async () => {
  const { client, seen } = clientOf([broken]);
  await assert.rejects(client.call('volumes.list', {}), (error) => {
    assert.ok(SvcError.is(error, 'connection_failed'));
    assert.match(error.message, /http:\/\/server\.test cannot be reached: connect ECONNREFUSED/);
    return true;
  });
  assert.equal(seen.length, 1 + client.maxRetries);
});

test('a server that asks to wait is waited for, unless that is longer than the call may take', async () => {
  const patient = clientOf([failing(429, 'rate_limited', { 'retry-after': '0' }), okay([])]);
  await patient.client.call('volumes.list', {});
  assert.equal(patient.seen.length, 2);
  const runDuringWaits = clientOf([failing(429, 'rate_limited', { 'retry-after': '30' }), okay([])]);
  const call = runDuringWaits.client.call('volumes.list', {}, { timeoutMs: 29_000 });
  await assert.rejects(call, (error) => SvcError.is(error, 'rate_limited') && error.retryAfterMs === 30_000);
  assert.equal(runDuringWaits.seen.length, 1);
});

test('streamed content is sent once, whole content again on a retry', async () => {
  const input = { params: { id: 'v' }, headers: { 'x-svc-file-path': 'YQ' } };
  async function* pieces() {
    yield Buffer.from('a');
    yield Buffer.from('b');
  }
  const once = clientOf([failing(503, 'unavailable'), okay({ ok: true })]);
  const call = once.client.call('volumeFiles.write', { ...input, body: pieces() });
  await assert.rejects(call, (error) => SvcError.is(error, 'unavailable'));
  assert.deepEqual(
    once.seen.map(({ body }) => body),
    ['ab'],
  );
  const twice = clientOf([failing(503, 'unavailable'), okay({ ok: true })]);
  await twice.client.call('volumeFiles.write', { ...input, body: 'ab' });
  assert.deepEqual(
    twice.seen.map(({ body }) => body),
    ['ab', 'ab'],
  );
});

test('a timeout and an abort have different errors', async () => {
  const { client } = clientOf([never]);
  const late = client.call('volumes.list', {}, { timeoutMs: 20 });
  await assert.rejects(late, (error) => SvcError.is(error, 'timeout'));
  const controller = new AbortController();
  const call = client.call('volumes.list', {}, { signal: controller.signal });
  controller.abort(new Error('enough'));
  await assert.rejects(
    call,
    (error) => SvcError.is(error, 'aborted') && (error.cause as Error).message === 'enough',
  );
  const early = client.call('volumes.list', {}, { signal: controller.signal });
  await assert.rejects(early, (error) => SvcError.is(error, 'aborted'));
});

test('an answer of a proxy is judged by its status', async () => {
  const page = () => new Response('<h1>Bad Gateway</h1>', { status: 502 });
  const { client, seen } = clientOf([page]);
  await assert.rejects(client.call('volumes.list', {}), (error) => SvcError.is(error, 'unavailable'));
  assert.equal(seen.length, 1 + client.maxRetries);
  const { client: newer } = clientOf([failing(409, 'code_of_the_future')]);
  await assert.rejects(newer.call('volumes.list', {}), (error) => {
    assert.ok(SvcError.is(error, 'invalid_request'));
    assert.equal(error.details?.['code'], 'code_of_the_future');
    return true;
  });
});

test('a failure over JSON-RPC has the same codes', async () => {
  const answer = {
    jsonrpc: '2.0',
    id: 1,
    error: { code: -32_603, message: 'no', data: { code: 'sandbox_not_running', state: 'stopped' } },
  };
  const { client, seen } = clientOf([okay(answer)]);
  await assert.rejects(client.rpc('sandbox.repl.run', {}), (error) => {
    assert.ok(SvcError.is(error, 'sandbox_not_running'));
    assert.deepEqual(error.details, { state: 'stopped' });
    return true;
  });
  assert.equal(seen[0]?.url, 'http://server.test/api/v1/rpc');
});

test('an address that is none is refused where it is given', () => {
  for (const apiUrl of ['server.test', 'ftp://x', '']) {
    assert.throws(
      () => new Client({ apiUrl }),
      (error) => SvcError.is(error, 'invalid_request'),
    );
  }
});

test('where no connection for code is to be had, runs share one of requests, and none waits for the end of its answer', async (t) => {
  const end = { status: 'success', result: null, exception: null, truncated: false };
  const answers: ServerResponse[] = [];
  const server = createServer((request, response) => {
    request.resume();
    if (request.url?.endsWith('/code/channel') === true) return void response.writeHead(404).end();
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.write(`event: end\ndata: ${JSON.stringify(end)}\n\n`);
    answers.push(response);
    return undefined;
  });
  let connections = 0;
  server.on('connection', () => (connections += 1));
  await once(server.listen(0, '127.0.0.1'), 'listening');
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  const apiUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const client = new Client({ apiUrl, apiKey: 'svc_key' });
  const runs = new CodeRuns(client, 'x');
  for (let count = 0; count < 5; count++) {
    await runCode(runs, '1+1', { language: 'python' });
    const answer = answers.pop();
    // One that was given up has closed its connection by now.
    await new Promise((resolve) => answer?.end(resolve));
  }
  // The end of an answer may arrive after the next request has left.
  assert.ok(connections <= 4, `${connections} connections`);
});
