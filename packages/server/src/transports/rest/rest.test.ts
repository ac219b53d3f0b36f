import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { test } from 'node:test';
import { waitUntil } from '@svc/contract/testing';
import { startTestServer } from '../../testing/test-server.ts';

const SIGNING_KEY = new Uint8Array(32).fill(1);

test('an address that does not exist is 404 not_found in the error envelope', async (t) => {
  const server = await startTestServer(t);
  const { status, body, headers } = await server.rest('GET', '/nothing');
  assert.equal(status, 404);
  assert.equal(body.error.code, 'not_found');
  assert.equal(body.error.details, null);
  assert.ok(headers.get('x-request-id'));
});

test('a method that an address does not take is 405 and says which it takes', async (t) => {
  const server = await startTestServer(t);
  const { status, body, headers } = await server.rest('PUT', '/sandboxes');
  assert.equal(status, 405);
  assert.equal(body.error.code, 'method_not_allowed');
  assert.equal(headers.get('allow'), 'GET, POST');
  const asked = await server.rest('OPTIONS', '/sandboxes');
  assert.deepEqual([asked.status, asked.headers.get('allow')], [405, 'GET, POST']);
  assert.equal((await server.rest('OPTIONS', '/nothing')).status, 404);
});

test('If-Match on an operation without versions is refused, not ignored', async (t) => {
  const server = await startTestServer(t);
  const { status, body } = await server.rest('POST', '/volumes', {
    body: { name: 'a' },
    headers: { 'if-match': '"1"' },
  });
  assert.deepEqual([status, body.error.details.field], [400, 'If-Match']);
  assert.equal((await server.rest('GET', '/volumes')).body.length, 1);
});

test('HEAD gets the answer of GET, without the body', async (t) => {
  const server = await startTestServer(t);
  for (const path of ['/v1/sandboxes', '/v1/sandboxes/not-a-uuid', '/v1/nothing']) {
    const got = await fetch(`${server.url}${path}`);
    const body = await got.text();
    const head = await fetch(`${server.url}${path}`, { method: 'HEAD' });
    assert.equal(head.status, got.status, path);
    assert.equal(await head.text(), '');
    assert.equal(head.headers.get('content-type'), got.headers.get('content-type'));
    const length = Number(head.headers.get('content-length'));
    // Only the sentence that names the method differs.
    assert.equal(
      length,
      Buffer.byteLength(path === '/v1/nothing' ? body.replace('GET', 'HEAD') : body),
      path,
    );
  }
});

test('the longest name that can be given can be asked for', async (t) => {
  const server = await startTestServer(t);
  const { body } = await server.rest('GET', `/sandboxes/by-name/${'n'.repeat(128)}`);
  assert.equal(body.error.code, 'sandbox_not_found');
});

test('a missing or wrong credential is 401 unauthorized, also when the request has other errors', async (t) => {
  const server = await startTestServer(t, { signingKey: SIGNING_KEY });
  for (const key of [undefined, 'svc_nonsense', 'svc_pat_nonsense', 'eyJ.nonsense.x', 'svc_eyJ.a.b']) {
    const { status, body, headers } = await server.rest('POST', '/sandboxes?x=1', {
      ...(key === undefined ? {} : { key }),
      body: '{',
    });
    assert.equal(status, 401, key ?? 'no key');
    assert.deepEqual(body, { error: { code: 'invalid_api_key', message: 'unauthorized', details: null } });
    assert.equal(headers.get('www-authenticate'), 'Bearer');
  }
});

test('an unknown query parameter, a bad limit and an unknown body field are 400 and named', async (t) => {
  const server = await startTestServer(t);
  const cases = [
    ['GET', '/sandboxes?bogus=1', undefined, 'bogus'],
    ['GET', '/sandboxes?limit=0', undefined, 'limit'],
    ['GET', '/sandboxes?limit=101', undefined, 'limit'],
    ['GET', '/sandboxes?limit=ten', undefined, 'limit'],
    ['GET', '/sandboxes/not-a-uuid', undefined, 'sandbox_id'],
    ['POST', '/sandboxes', { name: 'a', bogus: 1 }, 'bogus'],
    ['POST', '/sandboxes', {}, 'name'],
  ] as const;
  for (const [method, path, sent, field] of cases) {
    const { status, body } = await server.rest(method, path, { body: sent });
    assert.equal(status, 400, path);
    assert.equal(body.error.code, 'invalid_request', path);
    assert.match(String(body.error.details.field), new RegExp(field), path);
  }
});

test('a body that is no JSON, is of another type, or too large is refused in the envelope', async (t) => {
  const server = await startTestServer(t);
  const broken = await server.rest('POST', '/sandboxes', { body: '{' });
  assert.deepEqual([broken.status, broken.body.error.code], [400, 'invalid_request']);
  const typed = await server.rest('POST', '/sandboxes', {
    body: 'a=1',
    headers: { 'content-type': 'text/csv' },
  });
  assert.deepEqual([typed.status, typed.body.error.details.field], [400, 'Content-Type']);
  const megabytes = (count: number) => `"${'x'.repeat(count * 1024 * 1024)}"`;
  const large = await server.rest('POST', '/volumes', { body: megabytes(3) });
  assert.deepEqual([large.status, large.body.error.code], [413, 'payload_too_large']);
  const create = await server.rest('POST', '/sandboxes', { body: megabytes(25) });
  assert.deepEqual([create.status, create.body.error.details.max_bytes], [413, 24 * 1024 * 1024]);
});

test('a body that would keep the server busy is refused on every surface before it is read', async (t) => {
  const server = await startTestServer(t);
  const post = async (path: string, body: string) => {
    const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };
    const answer = await fetch(`${server.url}${path}`, { method: 'POST', headers, body });
    return { status: answer.status, text: await answer.text() };
  };
  const labels = Array.from({ length: 100_000 }, (_, index) => `"k${index}":0`).join(',');
  for (const body of [`{"labels":{${labels}}}`, '['.repeat(500_000) + ']'.repeat(500_000)]) {
    const reason = /"The body (is nested deeper than|has more than) /;
    const rest = await post('/v1/sandboxes', body);
    assert.deepEqual([rest.status, reason.test(rest.text)], [400, true], rest.text);
    const rpc = await post('/api/v1/rpc', body);
    assert.deepEqual([rpc.status, reason.test(rpc.text)], [400, true], rpc.text);
    const mcp = await post('/mcp', body);
    assert.deepEqual([mcp.status, /Parse error/.test(mcp.text)], [400, true], mcp.text);
  }
});

test('so many large bodies are read at once, and no more of one organization than its share', async (t) => {
  const server = await startTestServer(t);
  const { hostname, port } = new URL(server.url);
  // More than usual is promised, a little is sent, and the rest is awaited.
  const answers: string[] = [];
  for (let count = 0; count < 3; count += 1) {
    const socket = connect(Number(port), hostname);
    t.after(() => socket.destroy());
    socket.on('data', (data) => void answers.push(data.toString()));
    const head = ['POST /v1/sandboxes HTTP/1.1', `host: ${hostname}`, 'content-length: 9000000', '', '{'];
    socket.write(head.join('\r\n'));
  }
  await waitUntil(() => answers.length > 0, 'one more than the share being refused');
  assert.match(answers.join(''), /^HTTP\/1.1 429 [^]*retry-after: 1[^]*rate_limited/);
  assert.equal(answers.length, 1, 'the others are held');
  assert.equal((await server.rest('POST', '/sandboxes', { body: '{}' })).status, 400, 'usual ones are read');
});

test('malformed HTTP and addresses that cannot be decoded get the error envelope', async (t) => {
  const server = await startTestServer(t);
  const { hostname, port } = new URL(server.url);
  const answer = async (text: string) =>
    await new Promise<string>((resolve, reject) => {
      let received = '';
      const socket = connect(Number(port), hostname, () => socket.write(text));
      socket.on('data', (data) => (received += data.toString()));
      socket.on('error', reject);
      socket.on('close', () => resolve(received));
    });
  // Short enough to be read at once: what arrives after a connection was ended would take the answer with it.
  const huge = await answer(
    `GET /v1/sandboxes HTTP/1.1\r\nhost: localhost\r\nx: ${'y'.repeat(20_000)}\r\n\r\n`,
  );
  assert.match(huge, /^HTTP\/1\.1 431 /);
  assert.match(huge, /"error":\{"code":"invalid_request"/);
  const undecodable = await answer('GET /v1/%zz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n');
  assert.match(undecodable, /^HTTP\/1\.1 400 /);
  assert.match(undecodable, /"error":\{"code":"invalid_request"/);
});

test('a page elsewhere cannot call the control plane', async (t) => {
  const server = await startTestServer(t);
  const { status, body } = await server.rest('GET', '/sandboxes', {
    headers: { origin: 'https://elsewhere.example' },
  });
  assert.deepEqual([status, body.error.code], [403, 'forbidden']);
});

test('a CORS preflight of an allowed origin succeeds', async (t) => {
  const server = await startTestServer(t, { corsOrigins: ['https://app.example'] });
  const response = await fetch(`${server.url}/v1/volumes/x`, {
    method: 'OPTIONS',
    headers: { origin: 'https://app.example', 'access-control-request-method': 'PATCH' },
  });
  assert.equal(response.status, 204);
  assert.match(response.headers.get('access-control-allow-methods') ?? '', /PATCH/);
});

test('the request id of the caller is kept, and a bad one replaced', async (t) => {
  const server = await startTestServer(t);
  const kept = await server.rest('GET', '/sandboxes', { headers: { 'x-request-id': 'call-7' } });
  assert.equal(kept.headers.get('x-request-id'), 'call-7');
  const replaced = await server.rest('GET', '/sandboxes', { headers: { 'x-request-id': 'a b' } });
  assert.match(replaced.headers.get('x-request-id') ?? '', /^[0-9a-f-]{36}$/);
});

test('with a rate limit every answer says what is left, and too many are refused with the time to wait', async (t) => {
  const server = await startTestServer(t, { requestsPerMinute: 2 });
  const first = await server.rest('GET', '/sandboxes');
  assert.deepEqual(
    [first.headers.get('ratelimit-limit'), first.headers.get('ratelimit-remaining')],
    ['2', '1'],
  );
  await server.rest('GET', '/sandboxes');
  const third = await server.rest('GET', '/sandboxes');
  assert.deepEqual([third.status, third.body.error.code], [429, 'rate_limited']);
  assert.ok(Number(third.headers.get('retry-after')) > 0);
});

test('the OpenAPI document and the page to browse it need no credential', async (t) => {
  const server = await startTestServer(t, { signingKey: SIGNING_KEY });
  const document = (await (await fetch(`${server.url}/openapi.json`)).json()) as {
    readonly openapi: string;
    readonly paths: Readonly<Record<string, Readonly<Record<string, { readonly responses: object }>>>>;
  };
  assert.equal(document.openapi, '3.1.0');
  for (const [path, methods] of Object.entries(document.paths)) {
    if (!path.startsWith('/v1/orgs/{slug}')) continue;
    for (const { responses } of Object.values(methods))
      assert.match(JSON.stringify(responses), /org_not_found/, `${path} may be of no organization`);
  }
  const page = await (await fetch(`${server.url}/docs`)).text();
  assert.match(page, /\/v1\/orgs\/\{slug\}\/sandboxes\/\{sandbox_id\}\/stop/);
});
