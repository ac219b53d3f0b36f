import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { waitUntil } from '@svc/contract/testing';
import { FakeOrchestrator } from '../testing/fake-orchestrator.ts';
import { body, startHealthy, until } from '../testing/sandboxes.ts';
import { listRuns } from '../store/runs.ts';
import { makeFolder, type TestServer } from '../testing/test-server.ts';

/** How many changing calls to the engine a start, a stop, another start and a delete make. */
const CHANGES = 4;

async function liveOnce(server: TestServer): Promise<string> {
  const { body: made } = await server.rest('POST', '/sandboxes?start=true&wait_for=running', {
    body: body('one'),
  });
  await until(server, 'one', 'running');
  await server.rest('POST', '/sandboxes/by-name/one/stop');
  await until(server, 'one', 'stopped');
  await server.rest('POST', '/sandboxes/by-name/one/start');
  await until(server, 'one', 'running');
  await server.rest('DELETE', '/sandboxes/by-name/one');
  await waitUntil(async () => (await server.orchestrator.list()).length === 0, 'the removal');
  return made.id;
}

test('whichever call to the engine fails for a moment, the sandbox gets where it should be', async (t) => {
  for (let failAt = 1; failAt <= CHANGES; failAt += 1) {
    const orchestrator = new FakeOrchestrator();
    orchestrator.failAtChange = failAt;
    const server = await startHealthy(t, { orchestrator });
    const id = await liveOnce(server);
    assert.equal(
      orchestrator.changesAsked,
      CHANGES + 1,
      `the fault at ${failAt} was not met with one more call`,
    );
    const runs = await listRuns(server.database, id);
    assert.deepEqual(
      runs.map((run) => [run.end_reason, run.ended_at !== null]),
      [
        ['stopped', true],
        ['removed', true],
      ],
    );
    await server.close();
  }
});

/** A server whose engine stops answering right after call number `dieAt` changed something, as if the server were killed. */
async function killedAfter(t: TestContext, dieAt: number, act: (server: TestServer) => Promise<void>) {
  const folder = await makeFolder(t);
  const orchestrator = new FakeOrchestrator();
  const first = await startHealthy(t, { folder, orchestrator });
  await act(first);
  await waitUntil(() => orchestrator.changesAsked >= dieAt);
  await first.close();
  return await startHealthy(t, { folder, orchestrator });
}

test('a server that ends in the middle of starts leaves them to the next', async (t) => {
  const names = Array.from({ length: 10 }, (_, n) => `s${n}`);
  for (const dieAt of [1, 5, 9]) {
    const server = await killedAfter(t, dieAt, async (first) => {
      await Promise.all(
        names.map((name) => first.rest('POST', '/sandboxes?start=true', { body: body(name) })),
      );
    });
    for (const name of names) await until(server, name, 'running');
    assert.equal((await server.orchestrator.list()).length, names.length);
  }
});

test('reconciling twice changes nothing', async (t) => {
  const folder = await makeFolder(t);
  const orchestrator = new FakeOrchestrator();
  const first = await startHealthy(t, { folder, orchestrator });
  for (const name of ['runs', 'rests', 'fails']) {
    const reference = name === 'fails' ? 'missing' : 'x';
    await first.rest('POST', '/sandboxes?start=true&wait_for=running', { body: body(name, { reference }) });
  }
  await first.rest('POST', '/sandboxes/by-name/rests/stop');
  await until(first, 'rests', 'stopped');
  const rows = (server: TestServer) =>
    server.database.selectFrom('sandboxes').selectAll().orderBy('name').execute();
  const before = await rows(first);
  await first.close();
  for (let round = 0; round < 2; round += 1) {
    const server = await startHealthy(t, { folder, orchestrator });
    server.orchestrator.goAway();
    await waitUntil(() => !server.health.current.isHealthy);
    server.orchestrator.comeBack();
    await until(server, 'runs', 'running');
    await server.close();
  }
  const last = await startHealthy(t, { folder, orchestrator });
  const relevant = ({ version: _v, updated_at: _u, state_since: _s, ...row }: Record<string, unknown>) => row;
  assert.deepEqual((await rows(last)).map(relevant), before.map(relevant));
  assert.deepEqual((await rows(last)).slice(0, 1), before.slice(0, 1));
});

test('a start that takes too long has failed, and so has a stop', async (t) => {
  const server = await startHealthy(t);
  await server.rest('POST', '/sandboxes?start=true', { body: body('one', { reference: 'slow' }) });
  await waitUntil(() => server.orchestrator.fetching === 1);
  const long = new Date(Date.now() - 3_600_000).toISOString();
  await server.database.updateTable('sandboxes').set({ state_since: long }).execute();
  const failed = await until(server, 'one', 'failed');
  assert.match(failed.last_failure_message, /did not start it in time/);
  server.orchestrator.finishFetching();
  // It started after all, and its record has failed.
  await waitUntil(async () => {
    const states = (await server.orchestrator.list()).map(({ state }) => state);
    return states.every((state) => state === 'stopped') && states.length === 1;
  });
  assert.equal((await server.rest('GET', '/sandboxes/by-name/one')).body.status, 'failed');
});
