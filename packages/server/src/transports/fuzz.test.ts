import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { OPERATIONS, isErrorCode } from '@svc/contract';
import { WORK_TOOLS } from '@svc/contract/mcp';
import {
  BYTES,
  EVENT_STREAM,
  pathsOf,
  REST_OPERATIONS,
  type RestOperation,
  type RestOperationName,
} from '@svc/contract/rest';
import { DetachedAgent } from '../testing/detached-agent.ts';
import { RandomGenerator } from '../testing/random-generator.ts';
import { HOSTILE_TEXTS, mutateJson } from '../testing/mutate-json.ts';
import { RawHttp, type RawReply, type RawRequest } from '../testing/raw-http.ts';
import { sampleOf } from '../testing/sample-of-schema.ts';
import { body, startHealthy, UNKNOWN_ID, until } from '../testing/sandboxes.ts';
import type { TestServer } from '../testing/test-server.ts';
import { RPC_METHODS, type RpcMethod } from './rpc/methods.ts';
import { isToolName, operationOf, TOOL_LIST } from './mcp/tools.ts';

/** A short run by default, the same every time; `make fuzz` sends more. */
const REQUESTS = Number(process.env['SVC_FUZZ_REQUESTS'] ?? 900);
const SEED = Number(process.env['SVC_FUZZ_SEED'] || 1);
const ANSWER_MS = 60_000;
/** A valid request is sent this often, to check that the server continues. */
const HONEST_EVERY = 100;

const JSON_TYPE = { 'content-type': 'application/json' };
const REST_NAMES = Object.keys(REST_OPERATIONS) as RestOperationName[];

interface Fixture {
  readonly server: TestServer;
  readonly http: RawHttp;
  readonly random: RandomGenerator;
  /** Counts of answers so far, by status. */
  readonly statuses: Map<number, number>;
}

async function open(t: TestContext): Promise<Fixture> {
  const result = { status: 'success', output: '', error: '', truncated: false } as const;
  const codeRunner = { run: () => Promise.resolve(result), forget: () => undefined };
  const server = await startHealthy(t, { codeRunner });
  // Fake agent: no request runs on this host.
  const agent = new DetachedAgent();
  server.orchestrator.createAgent = () => agent.connect();
  const http = new RawHttp(server.url, ANSWER_MS);
  t.after(() => http.close());
  return { server, http, random: new RandomGenerator(SEED), statuses: new Map() };
}

/** The objects that paths name, created again after an accepted request has removed them. */
async function targetsOf({ server }: Fixture): Promise<Readonly<Record<string, string>>> {
  let sandbox = await server.rest('GET', '/sandboxes/by-name/target');
  if (sandbox.status === 404) {
    const made = await server.rest('POST', '/sandboxes?start=true', { body: body('target') });
    assert.equal(made.status, 200, JSON.stringify(made.body));
    sandbox = { ...made, body: await until(server, 'target', 'running') };
  }
  const volumes = await server.rest('GET', '/volumes');
  const known = (volumes.body as { id: string; name: string }[]).find(({ name }) => name === 'target')?.id;
  const volume = known ?? (await server.rest('POST', '/volumes', { body: { name: 'target' } })).body.id;
  return { sandbox_id: sandbox.body.id as string, id: volume as string, name: 'target', slug: 'default' };
}

async function sendCounted({ http, statuses }: Fixture, asked: RawRequest): Promise<RawReply> {
  const reply = await http.send(asked);
  statuses.set(reply.status, (statuses.get(reply.status) ?? 0) + 1);
  return reply;
}

test(`REST answers ${REQUESTS} mutated requests in words, and names the field that it refuses`, async (t) => {
  const fixture = await open(t);
  let targets = await targetsOf(fixture);
  for (let count = 0; count < REQUESTS; count++) {
    if (count % HONEST_EVERY === 0) targets = await targetsOf(fixture);
    const name = REST_NAMES[count % REST_NAMES.length] ?? assert.fail();
    const operation: RestOperation = REST_OPERATIONS[name];
    const asked = restRequest(operation, targets, fixture.random);
    const reply = await sendCounted(fixture, asked).catch((error: unknown) =>
      assert.fail(`${describe(name, asked)}: ${String(error)}`),
    );
    checkRest(reply, describe(name, asked));
  }
  await targetsOf(fixture);
  t.diagnostic(`seed ${SEED}: ${JSON.stringify(Object.fromEntries(fixture.statuses))}`);
  const passed = fixture.statuses.get(200) ?? 0;
  assert.ok(passed > REQUESTS / 20, 'some requests must get through to a handler');
  assert.ok(
    (fixture.statuses.get(400) ?? 0) > REQUESTS / 20,
    'some requests must be refused for what they say',
  );
});

/** A request with one mutated part, or none. */
function restRequest(
  operation: RestOperation,
  targets: Readonly<Record<string, string>>,
  random: RandomGenerator,
): RawRequest {
  const { method, params, query, headers, output } = operation;
  const wrong = random.oneOf(['params', 'query', 'headers', 'body', 'body', 'body', 'nothing']);
  const { path } = random.oneOf(pathsOf(operation));
  const known = Object.keys(params.properties);
  const broken = wrong === 'params' && known.length > 0 ? random.oneOf(known) : undefined;
  const filled = path.replaceAll(/\{(\w+)\}/g, (_, parameter: string) =>
    escape(parameter === broken ? random.oneOf(HOSTILE_TEXTS) : (targets[parameter] ?? UNKNOWN_ID)),
  );
  const sent = bodyOf(operation, wrong === 'body', random);
  return {
    method,
    path: `/v1${filled}${queryOf(sampleOf(query, random), wrong === 'query', random)}`,
    headers: { ...headersOf(sampleOf(headers, random), wrong === 'headers', random), ...sent?.headers },
    ...(sent === undefined ? {} : { body: sent.body }),
    isStream: output === EVENT_STREAM,
  };
}

function bodyOf({ body: schema }: RestOperation, isWrong: boolean, random: RandomGenerator) {
  if (schema === null) return undefined;
  const headers: Record<string, string> = schema === BYTES ? {} : JSON_TYPE;
  if (schema === BYTES) return { headers, body: 'bytes' };
  const value = sampleOf(schema, random);
  return { headers, body: isWrong ? mutateJson(value, random) : JSON.stringify(value) };
}

function queryOf(sample: unknown, isWrong: boolean, random: RandomGenerator): string {
  const entries = Object.entries(sample as Record<string, unknown>).map(
    ([name, value]) => [name, String(value)] as const,
  );
  if (isWrong) {
    const name = random.oneOf([
      ...entries.map(([known]) => known),
      'limit',
      'cursor',
      'extra',
      '__proto__',
      'wait_for',
    ]);
    entries.push([name, random.oneOf(HOSTILE_TEXTS)]);
    if (random.below(3) === 0) entries.push([name, 'twice']);
  }
  return entries.length === 0 ? '' : `?${entries.map((entry) => entry.map(escape).join('=')).join('&')}`;
}

const HEADER_NAMES = [
  'idempotency-key',
  'if-match',
  'range',
  'last-event-id',
  'x-svc-file-path',
  'content-type',
];

/** This client cannot send control characters in a header. */
function headersOf(sample: unknown, isWrong: boolean, random: RandomGenerator): Record<string, string> {
  const headers = Object.fromEntries(
    Object.entries(sample as Record<string, unknown>).map(([name, value]) => [name, String(value)]),
  );
  if (!isWrong) return headers;
  const text = random.oneOf(HOSTILE_TEXTS).replaceAll(/[^\x20-\x7e\x80-\xff]/g, '?');
  return { ...headers, [random.oneOf([...Object.keys(headers), ...HEADER_NAMES])]: text };
}

/** A lone surrogate cannot be percent-encoded; the bytes of its replacement can. */
function escape(text: string): string {
  return text.isWellFormed() ? encodeURIComponent(text) : '%ED%A0%80';
}

function checkRest({ status, text }: RawReply, asked: string): void {
  assert.ok(status >= 200 && status !== 500, `${asked}: ${status} ${text.slice(0, 2000)}`);
  if (status < 400) return;
  const { error } = JSON.parse(text) as {
    error: { code: string; message: string; details: { field?: unknown } | null };
  };
  assert.ok(isErrorCode(error.code), `${asked}: ${text}`);
  // `unavailable` is allowed: the agent of this test has no interpreter.
  assert.ok(status < 500 || error.code === 'unavailable', `${asked}: ${status} ${text}`);
  // The other codes with status 400 are about one field each.
  if (error.code !== 'invalid_request' && error.code !== 'invalid_sandbox_config') return;
  const field = error.details?.field;
  assert.ok(typeof field === 'string' && field !== '', `${asked}: no field in ${status} ${text}`);
}

function describe(name: string, { method, path, headers, body: sent }: RawRequest): string {
  const text = `${name}: ${method} ${path} ${JSON.stringify(headers ?? {})} ${String(sent ?? '')}`;
  return `seed ${SEED}, ${text.slice(0, 1500)}`;
}

interface RpcAnswer {
  readonly error?: {
    readonly code: number;
    readonly data?: { readonly code?: string; readonly field?: string };
  };
  readonly result?: {
    readonly isError?: boolean;
    readonly _meta?: { readonly error?: { readonly code?: string; readonly field?: string } };
  };
}

test('JSON-RPC answers mutated calls in words, and names the field that it refuses', async (t) => {
  const fixture = await open(t);
  const methods = Object.keys(RPC_METHODS) as RpcMethod[];
  let refused = 0;
  let done = 0;
  for (let count = 0; count < REQUESTS / 3; count++) {
    if (count % HONEST_EVERY === 0) await targetsOf(fixture);
    const method = fixture.random.oneOf(methods);
    const params = sampleOf(OPERATIONS[method].input, fixture.random);
    const call = { jsonrpc: '2.0', id: 1, method, params };
    // Mutates the whole call, or more often its parameters.
    const sent =
      fixture.random.below(4) === 0
        ? mutateJson(call, fixture.random)
        : `{"jsonrpc":"2.0","id":1,"method":"${method}","params":${mutateJson(params, fixture.random) || 'null'}}`;
    const asked = { method: 'POST', path: '/api/v1/rpc', headers: JSON_TYPE, body: sent };
    const { status, text } = await sendCounted(fixture, asked);
    assert.ok(status < 500, `${describe(method, asked)}: ${status} ${text}`);
    if (text === '') continue;
    for (const { error } of [JSON.parse(text) as RpcAnswer | RpcAnswer[]].flat()) {
      assert.notEqual(error?.data?.code, 'internal', `${describe(method, asked)}: ${text}`);
      if (error === undefined) done += 1;
      if (error?.code !== -32_602) continue;
      refused += 1;
      assert.ok((error.data?.field ?? '') !== '', `${describe(method, asked)}: no field in ${text}`);
    }
  }
  t.diagnostic(`seed ${SEED}: ${done} done, ${refused} refused`);
  assert.ok(done > REQUESTS / 200 && refused > REQUESTS / 60, `${done} done, ${refused} refused`);
});

test('MCP tools answer mutated arguments in words, and name the field that they refuse', async (t) => {
  const fixture = await open(t);
  const headers = await initialize(fixture);
  let refused = 0;
  let done = 0;
  for (let count = 0; count < REQUESTS / 3; count++) {
    if (count % HONEST_EVERY === 0) await targetsOf(fixture);
    const tool = fixture.random.oneOf(TOOL_LIST);
    const { input: schema } = isToolName(tool) ? OPERATIONS[operationOf(tool)] : WORK_TOOLS[tool];
    const sample = sampleOf(schema, fixture.random);
    const input = mutateJson(sample, fixture.random) || 'null';
    const sent = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"${tool}","arguments":${input}}}`;
    const asked = { method: 'POST', path: '/mcp', headers, body: sent };
    const { status, text } = await sendCounted(fixture, asked);
    assert.ok(status < 500, `${describe(tool, asked)}: ${status} ${text}`);
    const { error, result } = JSON.parse(/^data: (.*)$/m.exec(text)?.[1] ?? text) as RpcAnswer;
    const data = error?.data ?? result?._meta?.error;
    assert.notEqual(error?.code, -32_603, `${describe(tool, asked)}: ${text}`);
    assert.notEqual(data?.code, 'internal', `${describe(tool, asked)}: ${text}`);
    if (error === undefined && result?.isError !== true) done += 1;
    if (data?.field !== undefined) refused += 1;
  }
  t.diagnostic(`seed ${SEED}: ${done} done, ${refused} refused`);
  assert.ok(done > REQUESTS / 200 && refused > REQUESTS / 60, `${done} done, ${refused} refused`);
});

/** Starts a session and returns its headers. */
async function initialize({ server }: Fixture): Promise<Record<string, string>> {
  const headers = { ...JSON_TYPE, accept: 'application/json, text/event-stream' };
  const clientInfo = { name: 'test', version: '1' };
  const params = { protocolVersion: '2025-06-18', capabilities: {}, clientInfo };
  const sent = JSON.stringify({ jsonrpc: '2.0', id: 0, method: 'initialize', params });
  const answer = await fetch(`${server.url}/mcp`, { method: 'POST', headers, body: sent });
  await answer.text();
  return { ...headers, 'mcp-session-id': answer.headers.get('mcp-session-id') ?? assert.fail() };
}
