import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, createServer, type AddressInfo } from 'node:net';
import { after, test, type TestContext } from 'node:test';
import { waitUntil } from '@svc/contract/testing';
import { pino } from 'pino';
import { FakeOrchestrator } from '../testing/fake-orchestrator.ts';
import { body, eventsOf, startHealthy, until } from '../testing/sandboxes.ts';
import { claimSandbox } from '../store/claims.ts';
import { openStore } from '../store/open-store.ts';
import { postgresDialect } from '../store/postgres.ts';
import { freePort } from '../testing/free-port.ts';
import { TestPostgres } from '../testing/test-postgres.ts';
import { startReceiver } from '../testing/webhook-receiver.ts';

const postgres = await TestPostgres.start();
after(() => postgres[Symbol.asyncDispose]());

async function startTwo(t: TestContext, restSettings = {}) {
  const url = await postgres.createDatabase();
  const orchestrator = new FakeOrchestrator();
  const open = async () =>
    await startHealthy(t, {
      orchestrator,
      restSettings,
      database: await openStore(postgresDialect(url, pino({ level: 'silent' }))),
    });
  return { orchestrator, first: await open(), second: await open(), open };
}

test('two servers on one store start every sandbox once, whichever server gets the request', async (t) => {
  const { orchestrator, first, second } = await startTwo(t);
  const answers = await Promise.all(
    Array.from({ length: 30 }, (_, n) =>
      (n % 2 === 0 ? first : second).rest('POST', '/sandboxes?start=true&wait_for=running', {
        body: body(`s${n}`),
      }),
    ),
  );
  assert.deepEqual(new Set(answers.map((answer) => answer.body.status)), new Set(['running']));
  assert.equal(orchestrator.changesAsked, 30);
  const { id } = answers[0]?.body ?? {};
  assert.deepEqual(await eventsOf(second, id), ['sandbox_created', 'sandbox_started']);
});

test('two servers on one store deliver every event to a webhook once, and one delivers what the other left', async (t) => {
  const { first, second } = await startTwo(t, { outbound: { mayReachInside: true } });
  const receiver = await startReceiver(t);
  const make = async (n: number) =>
    await (n % 2 === 0 ? first : second).rest('POST', '/sandboxes', { body: body(`s${n}`) });
  const hook = { url: receiver.url, event_types: ['sandbox_created'] };
  const { id } = (await first.rest('POST', '/webhooks', { body: hook })).body;
  await Promise.all(Array.from({ length: 12 }, (_, n) => make(n)));
  const pages = async () =>
    (await second.rest('GET', `/webhooks/${id}/deliveries?limit=100`)).body.data as { status: string }[];
  const areOver = async (count: number) => {
    const all = await pages();
    return all.length === count && all.every(({ status }) => status === 'succeeded');
  };
  await waitUntil(() => areOver(12), 'all are delivered');
  assert.equal(receiver.received.length, 12);
  assert.equal(new Set(receiver.received.map(({ headers }) => headers['webhook-id'])).size, 12);

  await first.close();
  // As a server leaves it that was killed with it in its hands, and whose lease is over.
  await second.database
    .updateTable('webhook_deliveries')
    .set({
      status: 'pending',
      next_attempt_at: '2020-01-01',
      claimed_by: 'killed',
      claimed_until: '2020-01-02',
    })
    .where('id', '=', (qb) => qb.selectFrom('webhook_deliveries').select('id').orderBy('id').limit(1))
    .execute();
  await waitUntil(() => receiver.received.length === 13, 'what it left is delivered');
  assert.equal(new Set(receiver.received.map(({ headers }) => headers['webhook-id'])).size, 12);
});

test('a server that joins leaves a start alone that another one is at', async (t) => {
  const { first, orchestrator, open } = await startTwo(t);
  await first.rest('POST', '/sandboxes?start=true', { body: body('one', { reference: 'slow' }) });
  await waitUntil(() => orchestrator.fetching === 1);
  const third = await open();
  orchestrator.finishFetching();
  await until(third, 'one', 'running');
  assert.equal(orchestrator.changesAsked, 1);
});

test('a wait is answered by the server that was asked, also when the other one did the work', async (t) => {
  const { first, second, orchestrator } = await startTwo(t, { maxWaiters: 1 });
  await first.rest('POST', '/sandboxes?start=true', { body: body('one', { reference: 'slow' }) });
  await waitUntil(() => orchestrator.fetching === 1);
  const start = (timeout: number) =>
    second.rest('POST', `/sandboxes/by-name/one/start?wait_for=running&wait_timeout=${timeout}`);
  const hold = async () => {
    for (;;) {
      const answer = await start(30);
      // On a busy machine a server may take its engine for gone for a moment.
      if (answer.status !== 429 && answer.status !== 503) return answer;
    }
  };
  const waiting = hold();
  // There is room for one wait, so another one is refused as soon as this one is held.
  await waitUntil(async () => (await start(0)).status === 429);
  // It is queued before it requests the start; later requests to the same server come after it.
  await second.rest('POST', '/sandboxes', { body: body('two') });
  orchestrator.finishFetching();
  const answer = await waiting;
  assert.equal(answer.body.status, 'running', JSON.stringify(answer.body));
  assert.equal(orchestrator.changesAsked, 1);
});

test('a stop through one server ends the start that another one is at', async (t) => {
  const { first, second, orchestrator } = await startTwo(t);
  await first.rest('POST', '/sandboxes?start=true', { body: body('one', { reference: 'slow' }) });
  await waitUntil(() => orchestrator.fetching === 1);
  assert.equal((await second.rest('POST', '/sandboxes/by-name/one/stop')).body.status, 'stopping');
  await waitUntil(() => orchestrator.fetching === 0, 'the end of the fetch');
  await until(second, 'one', 'stopped');
});

test('work of a dead server is taken over when its claim expires', async (t) => {
  const { first, second } = await startTwo(t);
  const { body: made } = await first.rest('POST', '/sandboxes', { body: body('one') });
  assert.equal(await claimSandbox(first.database, made.id, 'dead', 60_000), true);
  assert.equal(await claimSandbox(first.database, made.id, 'other', 60_000), false);
  // Its last sign of life.
  assert.equal(await claimSandbox(first.database, made.id, 'dead', 500), true);
  const { body: started } = await second.rest('POST', '/sandboxes/by-name/one/start?wait_for=running');
  assert.equal(started.status, 'running');
});

test('a change of ingress rules through one server holds at a port that another server has open', async (t) => {
  const { first, second, orchestrator } = await startTwo(t);
  const port = await freePort('tcp');
  let letIn = 0;
  // The ports of a fake sandbox are those of this host.
  const inside = createServer((socket) => {
    letIn += 1;
    socket.on('error', () => undefined).end();
  }).listen(0, '127.0.0.1');
  t.after(() => inside.close());
  await once(inside, 'listening');
  const { port: guest } = inside.address() as AddressInfo;
  const network = { ports: [{ guest_port: guest, host_port: port }], policy: { default_ingress: 'allow' } };
  const { body: made } = await first.rest('POST', '/sandboxes?start=true&wait_for=running', {
    body: { ...body('one'), network },
  });
  assert.equal(made.status, 'running', JSON.stringify(made));
  const come = async () => {
    const socket = connect(port, '127.0.0.1').on('error', () => undefined);
    await new Promise((closed) => socket.once('close', closed));
  };
  const refused = async () => {
    const lines = await Array.fromAsync(orchestrator.networkLog(made.id, {}, AbortSignal.timeout(60_000)));
    return lines.length;
  };
  await come();
  assert.equal(letIn, 1);
  const policy = { default_ingress: 'deny', rules: [] };
  const { status } = await second.rest('PATCH', `/sandboxes/${made.id}/network`, { body: { policy } });
  assert.equal(status, 200);
  assert.equal(await refused(), 0);
  await waitUntil(async () => {
    await come();
    return (await refused()) > 0;
  }, 'the port is no longer open to every address');
});
