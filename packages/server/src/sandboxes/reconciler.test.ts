import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { waitUntil } from '@svc/contract/testing';
import type { SandboxSpec } from '@svc/contract';
import { FakeOrchestrator } from '../testing/fake-orchestrator.ts';
import type { Database } from '../store/database.ts';
import { openStore } from '../store/open-store.ts';
import { listRuns } from '../store/runs.ts';
import { getSandbox, listSandboxes, updateSandbox } from '../store/sandboxes.ts';
import { LogOnDisk } from '../store/log-on-disk.ts';
import { addSandbox } from '../testing/stored-sandbox.ts';
import { sqliteDialect } from '../store/sqlite.ts';
import { makeFolder, startTestServer } from '../testing/test-server.ts';
import { openOnFakeDisk } from '../testing/fake-disk.ts';
import { body, startHealthy } from '../testing/sandboxes.ts';

const SPEC: SandboxSpec = { image: { type: 'oci', reference: 'x' } };
const ignore = () => undefined;

/** The store of a server that was killed, and the orchestrator that lived on. */
async function leftBehind(
  t: TestContext,
  arrange: (db: Database, orchestrator: FakeOrchestrator) => Promise<void>,
) {
  const folder = await makeFolder(t);
  const orchestrator = new FakeOrchestrator();
  const database = await openStore(sqliteDialect(join(folder, 'store.db')));
  await arrange(database, orchestrator);
  await database.destroy();
  const server = await startTestServer(t, { folder, orchestrator });
  await waitUntil(() => server.health.current.isHealthy);
  return server;
}

test('a server killed between writing a record and asking the engine starts the sandbox after all', async (t) => {
  let id = '';
  const server = await leftBehind(t, async (db) => {
    ({ id } = await addSandbox(db, { namespace: 'n', name: 'a', spec: SPEC, ports: [] }));
  });
  await waitUntil(async () => (await getSandbox(server.database, id))?.observed === 'running');
  assert.equal((await server.orchestrator.get(id))?.state, 'running');
});

test('a server killed after the engine made the sandbox starts it after all, once', async (t) => {
  let id = '';
  const server = await leftBehind(t, async (db, orchestrator) => {
    ({ id } = await addSandbox(db, { namespace: 'n', name: 'a', spec: SPEC, ports: [] }));
    await orchestrator.create({ id, spec: SPEC }, ignore);
  });
  await waitUntil(async () => (await getSandbox(server.database, id))?.observed === 'running');
  assert.equal((await server.orchestrator.list()).length, 1);
});

test('a server killed before it wrote that the sandbox runs finds it running, with its run', async (t) => {
  let id = '';
  const server = await leftBehind(t, async (db, orchestrator) => {
    ({ id } = await addSandbox(db, { namespace: 'n', name: 'a', spec: SPEC, ports: [] }));
    await orchestrator.create({ id, spec: SPEC }, ignore);
    await orchestrator.start(id);
  });
  await waitUntil(async () => (await getSandbox(server.database, id))?.observed === 'running');
  const report = await server.orchestrator.get(id);
  assert.deepEqual(
    (await listRuns(server.database, id)).map((run) => [run.started_at, run.ended_at]),
    [[report?.startedAt, null]],
  );
});

test('a stop that was wanted is carried out by the next server', async (t) => {
  let id = '';
  const server = await leftBehind(t, async (db, orchestrator) => {
    const record = await addSandbox(db, { namespace: 'n', name: 'a', spec: SPEC, ports: [] });
    ({ id } = record);
    await orchestrator.create({ id, spec: SPEC }, ignore);
    await orchestrator.start(id);
    await updateSandbox(db, record, { desired: 'stopped', observed: 'stopping' });
  });
  await waitUntil(async () => (await server.orchestrator.get(id))?.state === 'stopped');
  await waitUntil(async () => (await getSandbox(server.database, id))?.observed === 'stopped');
});

test('a replaced sandbox is removed from the engine, and an unknown one is left alone', async (t) => {
  const server = await leftBehind(t, async (db, orchestrator) => {
    const { id } = await addSandbox(db, { namespace: 'n', name: 'a', spec: SPEC, ports: [] });
    for (const each of [id, 'unknown']) {
      await orchestrator.create({ id: each, spec: SPEC }, ignore);
      await orchestrator.start(each);
    }
    await addSandbox(db, { namespace: 'n', name: 'a', spec: SPEC, ports: [] });
  });
  const [record] = await listSandboxes(server.database);
  await waitUntil(async () => {
    const ids = (await server.orchestrator.list()).map(({ id }) => id);
    return ids.length === 2 && ids.includes('unknown') && ids.includes(record?.id ?? '');
  });
  assert.equal((await server.orchestrator.get('unknown'))?.state, 'running');
});

test('a sandbox that ended while no server ran is seen to have ended, and its run with it', async (t) => {
  let id = '';
  const server = await leftBehind(t, async (db, orchestrator) => {
    const record = await addSandbox(db, { namespace: 'n', name: 'a', spec: SPEC, ports: [] });
    ({ id } = record);
    await orchestrator.create({ id, spec: SPEC }, ignore);
    await orchestrator.start(id);
    await updateSandbox(db, record, { observed: 'running' });
    orchestrator.end(id, 'oom', 'too much memory');
  });
  await waitUntil(async () => (await getSandbox(server.database, id))?.observed === 'failed');
  const record = await getSandbox(server.database, id);
  assert.equal(record?.desired, 'stopped');
  assert.equal(record.failureMessage, 'too much memory');
  assert.deepEqual(
    (await listRuns(server.database, id)).map((run) => run.end_reason),
    ['oom'],
  );
});

test('a sandbox that the engine knows nothing of any more has failed, and says so', async (t) => {
  let id = '';
  const server = await leftBehind(t, async (db) => {
    const record = await addSandbox(db, { namespace: 'n', name: 'a', spec: SPEC, ports: [] });
    ({ id } = record);
    await updateSandbox(db, record, { observed: 'running', startedAt: '2026-01-01T00:00:00.000Z' });
  });
  await waitUntil(async () => (await getSandbox(server.database, id))?.observed === 'failed');
  assert.match((await getSandbox(server.database, id))?.failureMessage ?? '', /no longer knows/);
});

test('while the engine is away running sandboxes are temporarily unavailable, and run again when it is back', async (t) => {
  const server = await startTestServer(t);
  await waitUntil(() => server.health.current.isHealthy);
  await server.call('sandbox.start', { sandbox: 'a', config: { image: 'x' } });
  const observed = async () => (await listSandboxes(server.database))[0]?.observed;
  server.orchestrator.goAway();
  await waitUntil(async () => (await observed()) === 'temporarily_unavailable');
  assert.equal(server.health.current.isHealthy, false);
  server.orchestrator.comeBack();
  await waitUntil(async () => (await observed()) === 'running');
  await waitUntil(() => server.health.current.isHealthy);
  const { result } = await server.call('sandbox.command.run', {
    sandbox: 'a',
    command: 'echo',
    args: ['back'],
  });
  assert.equal((result as unknown as { output: string }).output, 'back\n');
});

test('a stop asked for while the engine is away is refused and changes nothing', async (t) => {
  const server = await startTestServer(t);
  await waitUntil(() => server.health.current.isHealthy);
  await server.call('sandbox.start', { sandbox: 'a', config: { image: 'x' } });
  server.orchestrator.goAway();
  const { status, body } = await server.post({
    jsonrpc: '2.0',
    id: 1,
    method: 'sandbox.stop',
    params: { sandbox: 'a' },
  });
  assert.deepEqual([status, body.error?.code], [502, -32_603]);
  server.orchestrator.comeBack();
  await waitUntil(async () => (await listSandboxes(server.database))[0]?.observed === 'running');
  assert.equal((await server.orchestrator.list())[0]?.state, 'running');
});

test('a stop whose engine goes away half-way says that it is written down, and is carried out', async (t) => {
  const server = await startTestServer(t);
  const { orchestrator } = server;
  await waitUntil(() => server.health.current.isHealthy);
  await server.call('sandbox.start', { sandbox: 'a', config: { image: 'x' } });
  orchestrator.failAtChange = orchestrator.changesAsked + 1;
  const { error } = await server.call('sandbox.stop', { sandbox: 'a' });
  assert.match(error?.message ?? '', /the stop is written down/);
  assert.equal((error?.data as { state?: string } | undefined)?.state, 'stopping');
  orchestrator.goAway();
  orchestrator.comeBack();
  await waitUntil(async () => (await orchestrator.list())[0]?.state === 'stopped');
  await waitUntil(async () => (await listSandboxes(server.database))[0]?.observed === 'stopped');
});

test('a start that was answered with an error does not come about later', async (t) => {
  const server = await startTestServer(t);
  const { orchestrator } = server;
  await waitUntil(() => server.health.current.isHealthy);
  await server.call('sandbox.start', { sandbox: 'a', config: { image: 'x' } });
  await server.call('sandbox.stop', { sandbox: 'a' });
  orchestrator.goAway();
  const { error } = await server.call('sandbox.start', { sandbox: 'a' });
  assert.equal(error?.code, -32_603);
  orchestrator.comeBack();
  await waitUntil(() => server.health.current.isHealthy);
  await waitUntil(async () => (await listSandboxes(server.database))[0]?.observed === 'failed');
  assert.equal((await orchestrator.list())[0]?.state, 'stopped');
});

test('a clean shutdown touches no sandbox, and the next server finds them', async (t) => {
  const folder = await makeFolder(t);
  const orchestrator = new FakeOrchestrator();
  const first = await startTestServer(t, { folder, orchestrator });
  await first.call('sandbox.start', { sandbox: 'a', config: { image: 'x' } });
  await first.close();
  assert.equal((await orchestrator.list())[0]?.state, 'running');
  const second = await startTestServer(t, { folder, orchestrator });
  await waitUntil(() => second.health.current.isHealthy);
  assert.equal(
    (await second.call('sandbox.command.run', { sandbox: 'a', command: 'true' })).error,
    undefined,
  );
});

test('changes that this server made itself are known from the answers and cause no request', async (t) => {
  const server = await startHealthy(t);
  const { orchestrator } = server;
  for (const name of ['one', 'two', 'three']) {
    const { body: made } = await server.rest('POST', '/sandboxes?start=true&wait_for=running', {
      body: body(name),
    });
    assert.equal(made.status, 'running');
    await server.rest('DELETE', `/sandboxes/${made.id}`);
    await waitUntil(async () => (await orchestrator.list()).length === 0);
  }
  // The last changes have been received by now.
  await server.rest('GET', '/sandboxes');
  assert.equal(orchestrator.asked, 0);
});

test('an end is seen that comes right after the answer to a start', async (t) => {
  const orchestrator = new (class extends FakeOrchestrator {
    override async create(...request: Parameters<FakeOrchestrator['create']>) {
      const report = await super.create(...request);
      this.end(report.id, 'exited', 'it ended at once');
      return report;
    }
  })();
  const server = await startHealthy(t, { orchestrator });
  const { body: made } = await server.rest('POST', '/sandboxes?start=true', { body: body('one') });
  await waitUntil(async () => (await getSandbox(server.database, made.id))?.observed === 'failed');
});

test('a start does not wait for the disk, and its answer does', async (t) => {
  const { database, disk } = await openOnFakeDisk(t);
  const server = await startHealthy(t, { database, isAlone: true });
  const create = async (name: string) =>
    await server.rest('POST', '/sandboxes?start=true&wait_for=running', { body: body(name) });
  // The first one makes the organization, too.
  await create('one');
  disk.hold();
  let isAnswered = false;
  const asked = create('two').finally(() => (isAnswered = true));
  const isRunning = async () =>
    (await listSandboxes(database, { name: 'two' }))[0]?.observed === 'running' || isAnswered;
  await waitUntil(isRunning);
  assert.equal(isAnswered, false);
  disk.letGo();
  assert.equal((await asked).body.status, 'running');
});

test('a create that another server has begun first is not begun again by the server of the request', async (t) => {
  let creates = 0;
  const lookAgain = Promise.withResolvers<void>();
  const orchestrator = new (class extends FakeOrchestrator {
    override async create(...request: Parameters<FakeOrchestrator['create']>) {
      creates += 1;
      return await super.create(...request);
    }

    override async *changes(signal: AbortSignal) {
      await lookAgain.promise;
      yield null;
      yield* super.changes(signal);
    }
  })();
  const path = join(await makeFolder(t), 'store.db');
  let isMade = async () => await Promise.resolve(false);
  const held = Promise.withResolvers<void>();
  // From the commit of the record on.
  const disk = async () => ((await isMade()) ? await held.promise : undefined);
  const database = await openStore(sqliteDialect(path, new LogOnDisk(path, disk)));
  const server = await startHealthy(t, { orchestrator, database, isAlone: true });
  isMade = async () => (await listSandboxes(database)).length === 1;
  const asked = server.rest('POST', '/sandboxes?start=true', { body: body('one', { reference: 'slow' }) });
  await waitUntil(isMade);
  lookAgain.resolve();
  await waitUntil(() => orchestrator.fetching === 1);
  held.resolve();
  const { body: made } = await asked;
  orchestrator.finishFetching();
  await waitUntil(async () => (await getSandbox(database, made.id))?.observed === 'running');
  assert.equal(creates, 1);
});

test('a sandbox that was on its way out when it was seen is made anew', async (t) => {
  const orchestrator = new (class extends FakeOrchestrator {
    override async start(id: string) {
      await this.remove(id);
      return await super.start(id);
    }
  })();
  const server = await startHealthy(t, { orchestrator });
  const { body: made } = await server.rest('POST', '/sandboxes', { body: body('one') });
  await orchestrator.create({ id: made.id, spec: SPEC }, ignore);
  await server.rest('POST', `/sandboxes/${made.id}/start`);
  await waitUntil(async () => (await getSandbox(server.database, made.id))?.observed === 'running');
});
