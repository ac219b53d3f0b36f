import assert from 'node:assert/strict';
import { once } from 'node:events';
import { test, type TestContext } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { PlatformError } from '@svc/contract';
import type { ServerEvent } from '@svc/contract/rest';
import { waitUntil } from '@svc/contract/testing';
import { sql } from 'kysely';
import type { WebSocket } from 'ws';
import { FairLimit } from '../../access/fair-limit.ts';
import type { RestRequest } from '../../dispatch/rest-dispatch.ts';
import {
  startChannelServer,
  type ChannelServer,
  type ChannelServerParts,
} from '../../testing/channel-server.ts';
import { RandomGenerator } from '../../testing/random-generator.ts';
import { mutateJson } from '../../testing/mutate-json.ts';
import { closeOf, openWebSocket, refusalOf } from '../../testing/channel.ts';
import { RateLimiter } from '../http/rate-limiter.ts';

const END: ServerEvent = { event: 'end', data: { status: 'success' } };
/** `make fuzz` sends more. */
const MESSAGES = Number(process.env['SVC_FUZZ_REQUESTS'] ?? 900) / 3;
const SEED = Number(process.env['SVC_FUZZ_SEED'] || 1);
const PYTHON = { code: '1+1', language: 'python' };

type Line = Readonly<Record<string, unknown>>;

interface Fixture {
  readonly server: ChannelServer;
  readonly socket: WebSocket;
  readonly lines: Line[];
  readonly requests: RestRequest[];
  readonly say: (message: unknown) => void;
  /** The lines of one run. */
  readonly linesOf: (id: number) => readonly Line[];
  readonly open: () => Promise<Pick<Fixture, 'socket' | 'lines'>>;
}

/** A connection for code whose runs are made by `run`. */
async function startFixture(
  t: TestContext,
  run: (request: RestRequest) => Promise<AsyncIterable<ServerEvent>>,
  { calls = new FairLimit(100), ...parts }: ChannelServerParts & { readonly calls?: FairLimit } = {},
): Promise<Fixture> {
  const requests: RestRequest[] = [];
  const call = async (_name: string, request: RestRequest) => {
    requests.push(request);
    return { kind: 'output', output: await run(request) } as const;
  };
  const code = { dispatch: { call }, calls, maxBodyBytes: 1000 };
  const server = await startChannelServer(t, { keepAliveMs: 50 }, { ...parts, code });
  const address = { ...(await server.addSandbox()), path: 'code/channel' };
  const open = async () => {
    const lines: Line[] = [];
    const socket = await openWebSocket(t, address, (data) => {
      for (const line of data.toString().split('\n').slice(0, -1)) lines.push(JSON.parse(line) as Line);
    });
    await waitUntil(() => lines.length > 0, { what: 'the name of the connection' });
    return { socket, lines };
  };
  const { socket, lines } = await open();
  const say = (message: unknown) => socket.send(JSON.stringify(message));
  const linesOf = (id: number) => lines.filter((line) => line['id'] === id);
  return { server, socket, lines, requests, say, linesOf, open };
}

async function* all(...events: readonly ServerEvent[]): AsyncGenerator<ServerEvent> {
  await Promise.resolve();
  yield* events;
}

/** Waits until the client disconnects. */
async function untilGone({ context }: RestRequest): Promise<never> {
  if (!context.signal.aborted) await once(context.signal, 'abort');
  throw context.signal.reason;
}

test('runs share a connection, and each gets its own events', async (t) => {
  const { lines, requests, say, linesOf } = await startFixture(t, ({ input }) =>
    Promise.resolve(all({ event: 'stdout', data: input.body }, END)),
  );
  assert.match(String(lines[0]?.['connection']), /^[0-9a-f-]{36}$/);
  say({ id: 1, run: PYTHON });
  say({ id: 7, run: { ...PYTHON, code: '2' } });
  await waitUntil(() => linesOf(1).length === 2 && linesOf(7).length === 2);
  assert.deepEqual(linesOf(7), [
    { id: 7, event: 'stdout', data: { code: '2', language: 'python' } },
    { id: 7, event: 'end', data: { status: 'success' } },
  ]);
  const [first, second] = requests;
  assert.notEqual(first?.work?.id, second?.work?.id);
  assert.deepEqual([first?.work?.isRepeat, first?.idempotencyKey], [false, undefined]);
});

test('a run that is asked for again is the same work, if it is the same code', async (t) => {
  const { lines, requests, say, linesOf } = await startFixture(t, () => Promise.resolve(all(END)));
  say({ id: 1, run: PYTHON });
  const again = { connection: lines[0]?.['connection'], id: 1 };
  say({ id: 2, run: PYTHON, again });
  say({ id: 3, run: { ...PYTHON, code: 'other' }, again });
  await waitUntil(() => linesOf(3).length === 1);
  const [first, second, third] = requests.map(({ work }) => work);
  assert.deepEqual(second, { id: first?.id, isRepeat: true });
  assert.notEqual(third?.id, first?.id);
  assert.match(first?.id ?? '', /^[0-9a-f]{32}$/);
});

test('an error of a run reaches this run alone, with the body of a REST error', async (t) => {
  const { say, linesOf } = await startFixture(t, () =>
    Promise.reject(new PlatformError('sandbox_not_running', 'start it first')),
  );
  say({ id: 1, run: { code: 1, language: 'python' } });
  say({ id: 2, run: { ...PYTHON, code: 'x'.repeat(1000) } });
  say({ id: 3, run: PYTHON });
  await waitUntil(() => linesOf(3).length === 1);
  const refusals = [1, 2, 3].map((id) => linesOf(id)[0] as { event: string; data: Line });
  assert.deepEqual(
    refusals.map(({ event, data }) => [event, data['status'], (data['error'] as Line)['code']]),
    [
      ['refused', 400, 'invalid_request'],
      ['refused', 413, 'payload_too_large'],
      ['refused', 409, 'sandbox_not_running'],
    ],
  );
  assert.match(JSON.stringify(refusals[0]), /"field":"code"/);
});

test('a bug is answered without its message', async (t) => {
  const { say, linesOf } = await startFixture(t, () => Promise.reject(new Error('secret')));
  say({ id: 1, run: PYTHON });
  await waitUntil(() => linesOf(1).length === 1);
  assert.match(JSON.stringify(linesOf(1)), /"refused".*500.*internal/);
  assert.doesNotMatch(JSON.stringify(linesOf(1)), /secret/);
});

const SENSELESS: readonly (readonly [string, RegExp])[] = [
  ['', /JSON/],
  ['[]', /one object/],
  ['null', /one object/],
  ['{"id":1,"run":', /JSON/],
  ['{"run":{}}', /id must be/],
  ['{"id":0,"run":{}}', /id must be/],
  ['{"id":1.5,"run":{}}', /id must be/],
  ['{"id":"1","run":{}}', /id must be/],
  ['{"id":1}', /run or cancel/],
  ['{"id":1,"cancel":false}', /cancel must be true/],
  ['{"id":1,"cancel":true,"run":{}}', /cancel must be true/],
  ['{"id":1,"run":{},"more":1}', /no field more/],
  ['{"id":1,"run":{},"again":{"id":1}}', /again must have/],
  ['{"id":1,"run":{},"again":null}', /again must have/],
  [`{"id":1,"run":{},"again":{"id":1,"connection":"${'x'.repeat(65)}"}}`, /again must have/],
  [`${'['.repeat(70)}${']'.repeat(70)}`, /nested/],
];

test('a message that cannot be answered ends the connection, which says why', async (t) => {
  const { open } = await startFixture(t, () => Promise.resolve(all(END)));
  for (const [message, expected] of SENSELESS) {
    const { socket } = await open();
    socket.send(message);
    const { code, reason } = await closeOf(socket);
    assert.equal(code, 1002, message);
    assert.match(reason, expected, message);
  }
});

test('an id is used once', async (t) => {
  const { socket, say, requests } = await startFixture(t, () => Promise.resolve(all(END)));
  say({ id: 5, run: PYTHON });
  say({ id: 5, run: PYTHON });
  const { code, reason } = await closeOf(socket);
  assert.deepEqual([code, reason], [1002, 'id must be greater than 5, the one before it']);
  assert.equal(requests.length, 1);
});

test('a run that is cancelled ends, and so does everything when the client leaves', async (t) => {
  const { socket, say, linesOf, requests } = await startFixture(t, untilGone);
  for (const id of [1, 2, 3]) say({ id, run: PYTHON });
  await waitUntil(() => requests.length === 3);
  say({ id: 2, cancel: true });
  say({ id: 9, cancel: true });
  await waitUntil(() => linesOf(2).length === 1);
  assert.deepEqual(linesOf(2), [{ id: 2, event: 'cancelled', data: {} }]);
  const aborted = () => requests.map(({ context }) => context.signal.aborted);
  assert.deepEqual(aborted(), [false, true, false]);
  socket.terminate();
  await waitUntil(() => aborted().every(Boolean), { what: 'the end of all runs' });
});

test('a run without output for a while is reported as begun', async (t) => {
  const { say, linesOf } = await startFixture(t, untilGone);
  say({ id: 1, run: PYTHON });
  await waitUntil(() => linesOf(1).length > 0);
  assert.deepEqual(linesOf(1), [{ id: 1, event: 'begun', data: {} }]);
});

test('each run counts as a call, and has a place among those at work', async (t) => {
  const calls = new FairLimit(4);
  const rateLimiter = new RateLimiter(4);
  const { say, linesOf } = await startFixture(t, untilGone, { calls, rateLimiter });
  for (const id of [1, 2, 3, 4]) say({ id, run: PYTHON });
  // The connection was the first call of four.
  await waitUntil(() => linesOf(3).length === 1 && linesOf(4).length === 1);
  assert.match(JSON.stringify(linesOf(3)), /as many calls of your organization are at work/);
  assert.match(JSON.stringify(linesOf(4)), /too many requests.*retry_after_seconds/);
  say({ id: 1, cancel: true });
  say({ id: 2, cancel: true });
  await waitUntil(() => calls.taken === 0, { what: 'the places of what was cancelled' });
});

test('events of a run are in the audit log; a log that cannot be written ends it', async (t) => {
  const { server, say, linesOf } = await startFixture(t, async (request) => {
    const organization = await server.database
      .selectFrom('organizations')
      .select('id')
      .executeTakeFirstOrThrow();
    request.context.noteBeside?.({
      organizationId: organization.id,
      type: 'exec_started',
      category: 'exec',
      actor: { kind: 'system', code: 'test', label: 'test' },
      payload: {},
      requestId: request.context.requestId,
      sourceAddress: request.context.sourceAddress,
    });
    return await untilGone(request);
  });
  say({ id: 1, run: PYTHON });
  const events = () => server.database.selectFrom('events').selectAll().execute();
  await waitUntil(async () => (await events()).length === 1);
  assert.equal((await events())[0]?.source_address, '127.0.0.1');
  await sql`alter table events rename to elsewhere`.execute(server.database);
  say({ id: 2, run: PYTHON });
  await waitUntil(() => linesOf(2).length === 1);
  assert.match(JSON.stringify(linesOf(2)), /unavailable.*the audit log cannot be written/);
  await sql`alter table elsewhere rename to events`.execute(server.database);
});

test('a caller without permission is refused, and disconnected when it loses its permission', async (t) => {
  const { server, socket } = await startFixture(t, () => Promise.resolve(all(END)));
  const mine = await server.addSandbox();
  const theirs = await server.addSandbox({ organization: 'globex' });
  const path = 'code/channel';
  const refused = async (address: Parameters<typeof refusalOf>[0]) => {
    const { status, body } = await refusalOf({ ...address, path });
    return [status, body.error.code];
  };
  assert.deepEqual(await refused({ ...mine, key: 'svc_nothing' }), [401, 'invalid_api_key']);
  assert.deepEqual(await refused({ ...mine, key: theirs.key }), [404, 'sandbox_not_found']);
  assert.deepEqual(await refused({ ...mine, sandboxId: 'x' }), [400, 'invalid_request']);
  const plain = await fetch(`${server.url}/v1/sandboxes/${mine.sandboxId}/${path}`, {
    headers: { authorization: `Bearer ${mine.key}` },
  });
  assert.deepEqual([plain.status, await plain.text()].join(' ').includes('Upgrade: websocket'), true);
  const closed = closeOf(socket);
  await server.database.updateTable('api_keys').set({ revoked_at: new Date().toISOString() }).execute();
  assert.deepEqual(await closed, { code: 1008, reason: 'invalid_api_key' });
});

test('a client that does not read holds up its own runs, and nothing is kept for it without end', async (t) => {
  let made = 0;
  async function* endless(): AsyncGenerator<ServerEvent> {
    for (; made < 2000; made++)
      yield await Promise.resolve({ event: 'stdout', data: { text: 'x'.repeat(64 * 1024) } });
    yield END;
  }
  const { socket, say, linesOf } = await startFixture(t, () => Promise.resolve(endless()));
  socket.pause();
  say({ id: 1, run: PYTHON });
  await waitUntil(async () => {
    const before = made;
    await delay(300);
    return made > 0 && made === before;
  }, 'no more is made');
  assert.ok(made < 1000, `${made} pieces of 64 KiB wait`);
  socket.resume();
  await waitUntil(() => linesOf(1).at(-1)?.['event'] === 'end');
  assert.equal(linesOf(1).length, 2001);
});

test('each message is answered, or closes its connection with a reason', async (t) => {
  const { open } = await startFixture(t, () => Promise.resolve(all(END)));
  const random = new RandomGenerator(SEED);
  const honest = { id: Number.MAX_SAFE_INTEGER, run: PYTHON };
  const outcomes = { answered: 0, ended: 0 };
  for (let count = 0; count < MESSAGES; count++) {
    const { socket, lines } = await open();
    const closed = closeOf(socket);
    const message = mutateJson({ id: 1, run: PYTHON, again: { connection: 'c', id: 1 } }, random);
    socket.send(message);
    // A later request, which shows that the server continues.
    socket.send(JSON.stringify(honest));
    const answered = waitUntil(() => lines.some(({ id, event }) => id === honest.id && event === 'end'));
    const end = await Promise.race([closed, answered]);
    if (end === undefined) outcomes.answered += 1;
    else {
      assert.equal(end.code, 1002, message);
      assert.notEqual(end.reason, '', message);
      answered.catch(() => undefined);
      outcomes.ended += 1;
    }
    socket.terminate();
  }
  assert.ok(outcomes.answered > 0 && outcomes.ended > 0, JSON.stringify(outcomes));
});
