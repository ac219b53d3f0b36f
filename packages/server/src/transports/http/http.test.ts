import assert from 'node:assert/strict';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { request, type IncomingMessage } from 'node:http';
import { connect } from 'node:net';
import { join, resolve } from 'node:path';
import { test } from 'node:test';
import { waitUntil } from '@svc/contract/testing';
import { METRIC_FAMILIES } from '../../accounting/metric-families.ts';
import { FakeOrchestrator } from '../../testing/fake-orchestrator.ts';
import { makeFolder, startTestServer } from '../../testing/test-server.ts';
import { DEFAULT_LIMITS } from './http-limits.ts';

const ROOT = resolve(import.meta.dirname, '../../../../..');
const METRICS = { jsonrpc: '2.0', method: 'sandbox.metrics.get', params: {}, id: 1 };

test('health is 200 with its message, for GET and HEAD, without a key', async (t) => {
  const server = await startTestServer(t, { signingKey: new Uint8Array(32) });
  await waitUntil(() => server.health.current.isHealthy);
  const response = await fetch(`${server.url}/api/v1/health`);
  assert.equal(response.status, 200);
  assert.deepEqual(await response.json(), { message: 'Service is healthy' });
  const head = await fetch(`${server.url}/api/v1/health`, { method: 'HEAD' });
  assert.equal(head.status, 200);
  assert.equal(await head.text(), '');
});

test('health is 503 with the reason while the engine is away', async (t) => {
  const orchestrator = new FakeOrchestrator();
  orchestrator.goAway();
  const server = await startTestServer(t, { orchestrator });
  await waitUntil(() => !server.health.current.isHealthy && server.health.current.reason.includes('reached'));
  const response = await fetch(`${server.url}/api/v1/health`);
  assert.equal(response.status, 503);
  assert.deepEqual(await response.json(), {
    message: 'Service cannot run sandboxes: the engine cannot be reached',
  });
});

test('calls that need the engine are 502 with a JSON-RPC error while it is away', async (t) => {
  const server = await startTestServer(t);
  await server.call('sandbox.start', { sandbox: 'a', config: { image: 'x' } });
  server.orchestrator.goAway();
  for (const [method, params, prefix] of [
    ['sandbox.start', { sandbox: 'b', config: { image: 'x' } }, 'sandbox start failed'],
    ['sandbox.stop', { sandbox: 'a' }, 'sandbox stop failed'],
  ] as const) {
    const { status, body } = await server.post({ ...METRICS, method, params });
    assert.equal(status, 502);
    assert.equal(body.error?.code, -32_603);
    assert.equal(body.error.message, `${prefix}: the engine cannot be reached`);
    assert.deepEqual(body.error.data, { code: 'orchestrator_unreachable' });
  }
});

test('a body over the limit is 413, and the server goes on', async (t) => {
  const server = await startTestServer(t, { limits: { ...DEFAULT_LIMITS, maxBodyBytes: 1000 } });
  const { status, body } = await server.post('x'.repeat(2000));
  assert.equal(status, 413);
  assert.equal(body.error?.code, -32_600);
  assert.equal(body.error.message, 'The request body is too large');
  assert.equal((await server.post(METRICS)).status, 200);
});

test('the default limit lets 2 MiB in and no more', async (t) => {
  const server = await startTestServer(t);
  const padded = (bytes: number) => JSON.stringify(METRICS).padEnd(bytes);
  assert.equal((await server.post(padded(2 * 1024 * 1024))).status, 200);
  assert.equal((await server.post(padded(2 * 1024 * 1024 + 1))).status, 413);
});

test('another content type is 415', async (t) => {
  const server = await startTestServer(t);
  for (const type of [
    'text/plain',
    'application/x-www-form-urlencoded',
    'multipart/form-data; boundary=x',
    'nonsense',
  ]) {
    const { status, body } = await server.post(METRICS, { headers: { 'content-type': type } });
    assert.equal(status, 415, type);
    assert.equal(body.error?.message, 'The Content-Type must be application/json');
    assert.equal(body.id, null);
  }
  const charset = { 'content-type': 'application/json; charset=utf-8' };
  assert.equal((await server.post(METRICS, { headers: charset })).status, 200);
});

test('bytes that are no UTF-8 are a parse error', async (t) => {
  const server = await startTestServer(t);
  const response = await fetch(`${server.url}/api/v1/rpc`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: Uint8Array.of(0x22, 0xff, 0x22),
  });
  assert.equal(response.status, 400);
});

for (const path of ['/api/v1/rpc', '/legacy/api/v1/rpc'])
  test(`a wrong method on ${path} is 405 with the error envelope of JSON-RPC`, async (t) => {
    const server = await startTestServer(t);
    const response = await fetch(`${server.url}${path}`);
    const body = (await response.json()) as { jsonrpc: string; error: { message: string }; id: null };
    assert.deepEqual([response.status, response.headers.get('allow')], [405, 'POST']);
    assert.deepEqual([body.jsonrpc, body.id], ['2.0', null]);
    assert.equal(body.error.message, `${path} takes POST only`);
  });

test('an unknown path is refused with the error envelope of REST', async (t) => {
  const server = await startTestServer(t);
  for (const path of ['/nope', '/v2/sandboxes', '/api/v1/nothing', '/mcpx']) {
    const response = await fetch(`${server.url}${path}?x=1`);
    assert.equal(response.status, 404);
    const message = `There is no GET ${path}`;
    assert.deepEqual(await response.json(), { error: { code: 'not_found', message, details: null } });
  }
  const response = await fetch(`${server.url}/%zz`);
  const { error } = (await response.json()) as { error: { code: string } };
  assert.deepEqual([response.status, error.code], [400, 'invalid_request']);
});

test('no answer is a page or a script to a browser, nor in reach of a page elsewhere', async (t) => {
  const { url } = await startTestServer(t);
  const paths = [
    '/v1/sandboxes',
    '/v1/none',
    '/none',
    '/%',
    '/api/v1/health',
    '/openapi.json',
    '/metrics',
    '/mcp',
  ];
  for (const path of paths) {
    const { headers } = await fetch(`${url}${path}`);
    assert.equal(headers.get('x-content-type-options'), 'nosniff', path);
    assert.equal(headers.get('cross-origin-resource-policy'), 'same-origin', path);
    assert.match(
      headers.get('content-security-policy') ?? '',
      /^default-src 'none'.*frame-ancestors 'none'.*sandbox$/,
      path,
    );
  }
  const foreign = await fetch(`${url}/v1/sandboxes`, {
    headers: { 'sec-fetch-site': 'same-site', 'sec-fetch-mode': 'no-cors' },
  });
  assert.equal(foreign.status, 403);
});

test('headers over the limit are 431, and what is no HTTP is 400, both with an error envelope', async (t) => {
  const server = await startTestServer(t);
  const port = Number(new URL(server.url).port);
  const send = async (text: string) => {
    const socket = connect(port, '127.0.0.1');
    socket.end(text);
    let answer = '';
    for await (const chunk of socket) answer += String(chunk);
    const body = JSON.parse(answer.slice(answer.indexOf('\r\n\r\n'))) as { error: { message: string } };
    assert.match(answer, /\r\nx-request-id: [0-9a-f-]{36}\r\n/, answer);
    return [answer.split(' ')[1], body.error.message];
  };
  const long = `GET /api/v1/health HTTP/1.1\r\nHost: localhost\r\nX: ${'x'.repeat(20_000)}\r\n\r\n`;
  assert.deepEqual(await send(long), ['431', 'The request headers are too large']);
  assert.deepEqual((await send('hello\r\n\r\n'))[0], '400');
  for (const path of ['/api/v1/health', '/v1/sandboxes']) {
    const close = 'Connection: close\r\n\r\n';
    assert.equal((await send(`GET ${path} HTTP/1.1\r\n${close}`))[0], '403', 'without a Host');
    assert.equal((await send(`GET ${path}/%ff HTTP/1.1\r\nHost: localhost\r\n${close}`))[0], '400');
  }
});

test('silent connections do not keep other clients out', async (t) => {
  const server = await startTestServer(t, { limits: { ...DEFAULT_LIMITS, maxConnections: 4 } });
  const port = Number(new URL(server.url).port);
  const silent = Array.from({ length: 12 }, () => connect(port, '127.0.0.1').on('error', () => undefined));
  t.after(() => silent.forEach((socket) => socket.destroy()));
  await Promise.all(silent.map((socket) => once(socket, 'connect')));
  assert.match(await (await fetch(`${server.url}/api/v1/health`)).text(), /Service/);
});

test('a request whose head does not come is refused in time', async (t) => {
  const server = await startTestServer(t, { limits: { ...DEFAULT_LIMITS, headTimeoutMs: 100 } });
  const socket = connect(Number(new URL(server.url).port), '127.0.0.1');
  let answer = '';
  for await (const chunk of socket) answer += String(chunk);
  assert.match(answer, /^HTTP\/1.1 408 /);
});

test('a foreign Host or Origin is 403, on every path', async (t) => {
  const server = await startTestServer(t, { corsOrigins: ['https://app.example'] });
  const { port } = new URL(server.url);
  const status = async (path: string, headers: Record<string, string>) => {
    const asked = request({ port, host: '127.0.0.1', path, headers, agent: false });
    asked.end();
    const [response] = (await once(asked, 'response')) as [IncomingMessage];
    response.resume();
    return { status: response.statusCode, cors: response.headers['access-control-allow-origin'] };
  };
  for (const path of ['/api/v1/health', '/metrics', '/nope']) {
    assert.equal((await status(path, { host: 'evil.example' })).status, 403, path);
    assert.equal((await status(path, { origin: 'http://evil.example' })).status, 403, path);
    assert.equal((await status(path, { origin: 'null' })).status, 403, path);
  }
  assert.equal((await status('/metrics', { origin: `http://127.0.0.1:${port}` })).status, 200);
  assert.deepEqual(await status('/metrics', { origin: 'https://app.example' }), {
    status: 200,
    cors: 'https://app.example',
  });
});

test('a page that was allowed may ask beforehand, and another one may not', async (t) => {
  const server = await startTestServer(t, { corsOrigins: ['https://app.example'] });
  const ask = (origin: string) =>
    fetch(`${server.url}/api/v1/rpc`, {
      method: 'OPTIONS',
      headers: { origin, 'access-control-request-method': 'POST' },
    });
  const allowed = await ask('https://app.example');
  assert.equal(allowed.status, 204);
  assert.match(allowed.headers.get('access-control-allow-headers') ?? '', /authorization/);
  assert.equal((await ask('https://evil.example')).status, 403);
});

test('every answer has a request id, the one that was sent when it is fit', async (t) => {
  const server = await startTestServer(t);
  const idFor = async (header: string) =>
    (await server.post(METRICS, { headers: { 'x-request-id': header } })).headers.get('x-request-id');
  assert.equal(await idFor('abc-1'), 'abc-1');
  assert.match((await idFor('not fit')) ?? '', /^[0-9a-f-]{36}$/);
});

test('calls beyond the limit are refused at once instead of queued', async (t) => {
  const server = await startTestServer(t, { maxConcurrentCalls: 1 });
  await server.call('sandbox.start', { sandbox: 'a', config: { image: 'x' } });
  const folder = await makeFolder(t);
  const script = 'touch "$0/begun"; until [ -e "$0/go" ]; do sleep 0.05; done';
  const slow = server.call('sandbox.command.run', {
    sandbox: 'a',
    command: 'sh',
    args: ['-c', script, folder],
  });
  await waitUntil(() => existsSync(join(folder, 'begun')), 'the beginning of the command');
  assert.equal((await server.post(METRICS)).status, 503);
  await writeFile(join(folder, 'go'), '');
  assert.equal((await slow).error, undefined);
  assert.equal((await server.post(METRICS)).status, 200);
});

test('Prometheus reads counts of calls, sandboxes by state, and whether the engine is up', async (t) => {
  const server = await startTestServer(t);
  await waitUntil(() => server.health.current.isHealthy);
  await server.call('sandbox.start', { sandbox: 'a', config: { image: 'x' } });
  await server.call('sandbox.stop', { sandbox: 'ghost' });
  const text = await (await fetch(`${server.url}/metrics`)).text();
  for (const line of [
    'svc_engine_up 1',
    'svc_sandboxes{state="running"} 1',
    'svc_calls_total{operation="sandbox.start",outcome="success"} 1',
    'svc_calls_total{operation="sandbox.stop",outcome="sandbox_not_found"} 1',
    'svc_call_duration_seconds_count{operation="sandbox.start"} 1',
  ]) {
    assert.ok(text.includes(`${line}\n`), line);
  }
});

test('the table lists all series of /metrics and no others, with those of the Grafana dashboard', async (t) => {
  const server = await startTestServer(t);
  await server.call('sandbox.metrics.get', {});
  await waitUntil(async () => (await scrape(server.url)).includes('svc_disk_short'), {
    what: 'the disk is told',
  });
  const exported = [...(await scrape(server.url)).matchAll(/^# TYPE (\S+) (\S+)$/gm)].map(
    ([, name, type]) => `${name} ${type}`,
  );
  const table = Object.entries(METRIC_FAMILIES).map(([name, { type }]) => `${name} ${type}`);
  assert.deepEqual(exported.toSorted(), table.toSorted());
  const dashboard = readFileSync(join(ROOT, 'docs/reference/grafana-dashboard.json'), 'utf8');
  const asked = [...dashboard.matchAll(/\b(svc_|process_)\w+/g)].map(([name]) =>
    name.replace(/_bucket$/, ''),
  );
  assert.ok(asked.length > 10);
  assert.deepEqual(
    [...new Set(asked)].filter((name) => !(name in METRIC_FAMILIES)),
    [],
  );
});

test('the dashboard of Grafana asks by labels that there are, and is one that can be imported', () => {
  const dashboard = JSON.parse(
    readFileSync(join(ROOT, 'docs/reference/grafana-dashboard.json'), 'utf8'),
  ) as GrafanaDashboard;
  const variables = dashboard.templating.list.map(({ name }) => name);
  assert.deepEqual(variables, ['datasource', 'instance']);
  assert.equal(new Set(dashboard.panels.map(({ id }) => id)).size, dashboard.panels.length);
  for (const { title, datasource, fieldConfig, targets } of dashboard.panels) {
    assert.deepEqual(datasource, { type: 'prometheus', uid: '${datasource}' }, title);
    assert.match(
      fieldConfig.defaults.unit,
      /^(bool_on_off|bool_yes_no|short|reqps|s|percentunit|bytes)$/,
      title,
    );
    assert.equal(new Set(targets.map(({ refId }) => refId)).size, targets.length, title);
    for (const { expr, legendFormat } of targets) {
      const families = [...expr.matchAll(/\b(?:svc_|process_)\w+/g)].map(
        ([name]) => METRIC_FAMILIES[name.replace(/_bucket$/, '') as keyof typeof METRIC_FAMILIES],
      );
      assert.ok(families.length > 0, expr);
      // Labels that Prometheus adds: the scraped target and the bound of a bucket.
      const known = new Set<string>(['instance', 'le', ...families.flatMap(({ labels }) => labels)]);
      const grouped = [...expr.matchAll(/by \(([^)]*)\)/g)].flatMap(([, names = '']) => names.split(', '));
      const chosen = [...expr.matchAll(/[{,]\s*(\w+)(?:=~|!~|!=|=)/g)].map(([, name = '']) => name);
      const shown = [...legendFormat.matchAll(/\{\{(\w+)\}\}/g)].map(([, name = '']) => name);
      assert.deepEqual(
        [...grouped, ...chosen, ...shown].filter((name) => !known.has(name)),
        [],
        expr,
      );
      // What an expression sums up has only the labels that it keeps.
      if (expr.includes('sum'))
        assert.deepEqual(
          shown.filter((name) => !grouped.includes(name)),
          [],
          expr,
        );
    }
  }
});

interface GrafanaDashboard {
  readonly templating: { readonly list: readonly { readonly name: string }[] };
  readonly panels: readonly {
    readonly id: number;
    readonly title: string;
    readonly datasource: unknown;
    readonly fieldConfig: { readonly defaults: { readonly unit: string } };
    readonly targets: readonly {
      readonly refId: string;
      readonly expr: string;
      readonly legendFormat: string;
    }[];
  }[];
}

async function scrape(url: string): Promise<string> {
  return await (await fetch(`${url}/metrics`)).text();
}
