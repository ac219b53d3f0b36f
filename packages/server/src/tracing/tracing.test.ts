import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { test, type TestContext } from 'node:test';
import { waitUntil } from '@svc/contract/testing';
import { pino } from 'pino';
import { startChannelServer } from '../testing/channel-server.ts';
import { openChannel } from '../testing/channel.ts';
import { FakeOrchestrator } from '../testing/fake-orchestrator.ts';
import { startTestServer } from '../testing/test-server.ts';
import { readOtelSettings, type OtelSettings } from './otel-settings.ts';
import { SpanExporter } from './span-exporter.ts';
import type { FinishedSpan } from './span.ts';
import { tracedCalls } from './traced-calls.ts';
import { Tracer } from './tracer.ts';

const TRACE = '0af7651916cd43dd8448eb211c80319c';
const PARENT = 'b7ad6b7169203331';

interface SentSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly name: string;
  readonly kind: number;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly attributes: readonly { readonly key: string; readonly value: Readonly<Record<string, unknown>> }[];
  readonly status?: { readonly code: number };
}

/** A collector of OTLP over HTTP, and what came there. */
async function startCollector(t: TestContext) {
  const received: { path: string; headers: IncomingHttpHeaders; body: string }[] = [];
  const server = createServer((request, response) => {
    void text(request).then((body) => {
      received.push({ path: request.url ?? '', headers: request.headers, body });
      response.end('{}');
    });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => server.close());
  const spans = () =>
    received.flatMap(({ body }) => {
      const { resourceSpans } = JSON.parse(body) as {
        resourceSpans: { scopeSpans: { spans: SentSpan[] }[] }[];
      };
      return resourceSpans.flatMap((resource) => resource.scopeSpans.flatMap((scope) => scope.spans));
    });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, received, spans };
}

function settingsOf(env: Readonly<Record<string, string>>): OtelSettings {
  const problems: string[] = [];
  const settings = readOtelSettings({ OTEL_BSP_SCHEDULE_DELAY: '10', ...env }, problems);
  assert.deepEqual(problems, []);
  return settings ?? assert.fail('no traces');
}

function startTracing(t: TestContext, env: Readonly<Record<string, string>>): Tracer {
  const settings = settingsOf(env);
  const exporter = new SpanExporter(settings, '1.2.3', pino({ level: 'silent' }));
  t.after(() => exporter.close());
  return new Tracer(settings, exporter.add);
}

function attributesOf({ attributes }: SentSpan): Readonly<Record<string, unknown>> {
  return Object.fromEntries(attributes.map(({ key, value }) => [key, Object.values(value)[0]]));
}

test('a request is a span of the trace that its caller names, with its call and those of the engine below it', async (t) => {
  const { url, received, spans } = await startCollector(t);
  const tracer = startTracing(t, {
    OTEL_EXPORTER_OTLP_ENDPOINT: `${url}/`,
    OTEL_SERVICE_NAME: 'sandboxes',
    OTEL_EXPORTER_OTLP_HEADERS: 'x-token=abc%3D,other = 1',
    OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment=test',
  });
  const orchestrator = tracedCalls(new FakeOrchestrator());
  const server = await startTestServer(t, { tracer, orchestrator });
  const headers = { traceparent: `00-${TRACE}-${PARENT}-01`, authorization: 'Bearer svc_secret' };
  const made = await server.rest('POST', '/orgs/default/sandboxes', {
    headers,
    body: {
      name: 'web',
      image: { type: 'oci', reference: 'alpine' },
      env: [{ key: 'PASSWORD', value: 'hunter2' }],
    },
  });
  assert.equal(made.status, 200, JSON.stringify(made.body));
  await waitUntil(() => spans().some(({ kind }) => kind === 2), { what: 'a span of the request' });
  const request = spans().find(({ kind }) => kind === 2) ?? assert.fail();
  assert.deepEqual([request.traceId, request.parentSpanId], [TRACE, PARENT]);
  assert.equal(request.name, 'POST /v1/orgs/{slug}/sandboxes');
  assert.partialDeepStrictEqual(attributesOf(request), { 'http.response.status_code': '200' });
  assert.ok(BigInt(request.endTimeUnixNano) > BigInt(request.startTimeUnixNano));
  const call = spans().find(({ name }) => name === 'sandboxes.create') ?? assert.fail();
  assert.deepEqual([call.traceId, call.parentSpanId], [TRACE, request.spanId]);
  assert.equal(attributesOf(call)['svc.organization'], 'default');
  const checked = spans().find(({ name }) => name === 'engine.check') ?? assert.fail('no call of the engine');
  assert.deepEqual([checked.traceId, checked.parentSpanId, checked.kind], [TRACE, request.spanId, 3]);
  const path = `/orgs/default/sandboxes/${made.body.id}/start?wait_for=running`;
  assert.equal((await server.rest('POST', path, { headers })).status, 200);
  await waitUntil(() => spans().some(({ name }) => name.endsWith('/start')), { what: 'a span of the start' });
  const engine =
    spans().find(({ name }) => name === 'engine.create') ?? assert.fail('no create of the engine');
  assert.deepEqual([engine.traceId, attributesOf(engine)['svc.id']], [TRACE, made.body.id]);
  const [first] = received;
  assert.deepEqual(
    [first?.path, first?.headers['x-token'], first?.headers['other']],
    ['/v1/traces', 'abc=', '1'],
  );
  assert.match(first?.body ?? '', /"service.name","value":\{"stringValue":"sandboxes"\}.*/);
  assert.match(first?.body ?? '', /deployment.environment/);
  assert.doesNotMatch(received.map(({ body }) => body).join(''), /hunter2|svc_secret|PASSWORD/);
});

test('calls of a batch are spans of their own, and a failure has its code', async (t) => {
  const { url, spans } = await startCollector(t);
  const server = await startTestServer(t, { tracer: startTracing(t, { OTEL_EXPORTER_OTLP_ENDPOINT: url }) });
  const call = (method: string, params: object, id: number) => ({ jsonrpc: '2.0', method, params, id });
  await server.post([
    call('sandbox.metrics.get', {}, 1),
    call('sandbox.stop', { sandbox: 'missing', namespace: 'default' }, 2),
  ]);
  await waitUntil(() => spans().length >= 3, { what: 'three spans' });
  const failed = spans().find(({ name }) => name === 'sandbox.stop') ?? assert.fail();
  assert.equal(failed.status?.code, 2);
  assert.equal(attributesOf(failed)['error.type'], 'sandbox_not_found');
  const fine = spans().find(({ name }) => name === 'sandbox.metrics.get') ?? assert.fail();
  assert.equal(fine.status, undefined);
  assert.equal(fine.traceId, failed.traceId);
});

test('a request for what is not there is named by its method alone, as OpenTelemetry wants it', async (t) => {
  const { url, spans } = await startCollector(t);
  const server = await startTestServer(t, { tracer: startTracing(t, { OTEL_EXPORTER_OTLP_ENDPOINT: url }) });
  assert.equal((await fetch(new URL('/secret-place', server.url))).status, 404);
  await waitUntil(() => spans().length > 0, { what: 'a span of the request' });
  const [span = assert.fail()] = spans();
  assert.deepEqual([span.name, attributesOf(span)['http.route']], ['GET', undefined]);
  assert.doesNotMatch(JSON.stringify(spans()), /secret-place/);
});

test('a command channel is a span until it closes, and each command over it has one', async (t) => {
  const { url, spans } = await startCollector(t);
  const tracer = startTracing(t, { OTEL_EXPORTER_OTLP_ENDPOINT: url });
  const server = await startChannelServer(t, {}, { tracer });
  const address = await server.addSandbox();
  const { channel, socket } = await openChannel(t, address);
  await channel.run({ cmd: 'sh', args: ['-c', 'hunter2'] });
  await waitUntil(() => spans().some(({ name }) => name === 'exec'), { what: 'a span of the command' });
  assert.ok(!spans().some(({ kind }) => kind === 2));
  socket.close();
  await waitUntil(() => spans().some(({ kind }) => kind === 2), { what: 'a span of the channel' });
  const opened = spans().find(({ kind }) => kind === 2) ?? assert.fail();
  const route = '/v1/sandboxes/{sandbox_id}/agent';
  assert.equal(opened.name, `GET ${route}`);
  assert.partialDeepStrictEqual(attributesOf(opened), {
    'http.route': route,
    'http.response.status_code': '101',
    'svc.organization': 'acme',
    'svc.sandbox.id': address.sandboxId,
  });
  assert.equal(spans().find(({ name }) => name === 'exec')?.parentSpanId, opened.spanId);
  assert.doesNotMatch(JSON.stringify(spans()), /hunter2/);
});

test('without a collector requests are answered, what waits is bounded, and the log says what was dropped', async (t) => {
  const lines: string[] = [];
  const logger = pino({ level: 'warn' }, { write: (line: string) => void lines.push(line) });
  const settings = settingsOf({ OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:1' });
  const exporter = new SpanExporter({ ...settings, everyMs: 3_600_000 }, '1.2.3', logger);
  const server = await startTestServer(t, { tracer: new Tracer(settings, exporter.add) });
  assert.equal((await server.rest('GET', '/orgs/default/sandboxes')).status, 200);
  for (let count = 0; count < 5000; count++) exporter.add(sampleSpan());
  await waitUntil(() => lines.length > 0, { what: 'a log line' });
  await exporter.close();
  assert.equal(lines.length, 1);
  assert.match(lines[0] ?? '', /"dropped":\d+.*spans of traces were dropped/);
});

function sampleSpan(): FinishedSpan {
  const ids = { traceId: TRACE, spanId: PARENT, parentSpanId: null };
  return { ...ids, name: 'x', kind: 1, startMs: 1, endMs: 2, attributes: {}, failure: null };
}

test('whether a trace is recorded is for its caller to say, or for the sampler', () => {
  const begun = (env: Readonly<Record<string, string>>, traceparent?: string) => {
    const settings = settingsOf({ OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:1', ...env });
    return new Tracer(settings, () => undefined).begin('x', traceparent);
  };
  const from = (flags: string) => `00-${TRACE}-${PARENT}-${flags}`;
  assert.equal(begun({}, from('01'))?.traceId, TRACE);
  assert.equal(begun({}, from('00')), undefined);
  assert.equal(begun({ OTEL_TRACES_SAMPLER: 'always_on' }, from('00'))?.traceId, TRACE);
  assert.equal(begun({ OTEL_TRACES_SAMPLER: 'parentbased_always_off' }), undefined);
  for (const broken of [
    '',
    'x',
    from('01').toUpperCase(),
    `00-${'0'.repeat(32)}-${PARENT}-01`,
    `ff${from('01').slice(2)}`,
  ])
    assert.notEqual(begun({}, broken)?.traceId, TRACE, broken);
  const ratio = { OTEL_TRACES_SAMPLER: 'traceidratio', OTEL_TRACES_SAMPLER_ARG: '0.25' };
  const recorded = Array.from({ length: 4000 }, () => begun(ratio)).filter((span) => span !== undefined);
  assert.ok(recorded.length > 800 && recorded.length < 1200, `${recorded.length} of 4000`);
});

test('variables that ask for nothing give no traces; those that cannot be met are named', () => {
  const endpoint = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:4318' };
  for (const env of [
    {},
    { ...endpoint, OTEL_SDK_DISABLED: 'true' },
    { ...endpoint, OTEL_TRACES_EXPORTER: 'none' },
  ])
    assert.equal(readOtelSettings(env, []), null);
  for (const [name, value] of Object.entries({
    OTEL_EXPORTER_OTLP_ENDPOINT: 'collector:4318',
    OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc',
    OTEL_EXPORTER_OTLP_HEADERS: 'secret-without-a-name',
    OTEL_TRACES_EXPORTER: 'zipkin',
    OTEL_TRACES_SAMPLER: 'sometimes',
    OTEL_BSP_SCHEDULE_DELAY: 'soon',
  })) {
    const problems: string[] = [];
    readOtelSettings({ ...endpoint, [name]: value }, problems);
    assert.equal(problems.length, 1, name);
    assert.match(problems[0] ?? '', new RegExp(`^${name} `));
    assert.doesNotMatch(problems[0] ?? '', /secret/);
  }
});
