import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { waitUntil } from '@svc/contract/testing';
import { listRuns } from '../store/runs.ts';
import { makeFolder, startTestServer, type TestServer } from '../testing/test-server.ts';
import { FakeOrchestrator } from '../testing/fake-orchestrator.ts';
import { body, eventsOf, startHealthy, until } from '../testing/sandboxes.ts';

const run = async (server: TestServer, name = 'one') => {
  const { body: made } = await server.rest('POST', '/sandboxes?start=true&wait_for=running', {
    body: body(name),
  });
  assert.equal(made.status, 'running');
  return made;
};
const recover = (server: TestServer, action: string, name = 'one') =>
  server.rest('POST', `/sandboxes/by-name/${name}/recover`, { body: { action } });

/** Lets the recovery period be over. */
const endRecovery = async ({ database }: TestServer) => {
  await database
    .updateTable('sandboxes')
    .set({ recovery_ends_at: new Date(0).toISOString() })
    .execute();
};

test('an outage shows since when and until when, and ends without a call', async (t) => {
  const server = await startHealthy(t, { restSettings: { recoveryMs: 60_000 } });
  await run(server);
  server.orchestrator.goAway();
  const away = await until(server, 'one', 'temporarily_unavailable');
  const [since, end] = [away.temporarily_unavailable_since, away.automatic_recovery_ends_at].map(Date.parse);
  assert.equal((end ?? 0) - (since ?? 0), 60_000);
  server.orchestrator.comeBack();
  const back = await until(server, 'one', 'running');
  assert.deepEqual([back.temporarily_unavailable_since, back.automatic_recovery_ends_at], [null, null]);
  assert.equal(back.started_at, away.started_at);
});

test('past its deadline an outage needs a decision, and the return of the engine is none', async (t) => {
  const server = await startHealthy(t, { restSettings: { recoveryMs: 1 } });
  const { id } = await run(server);
  server.orchestrator.goAway();
  const stuck = await until(server, 'one', 'recovery_decision_required');
  assert.notEqual(stuck.temporarily_unavailable_since, null);
  server.orchestrator.comeBack();
  await waitUntil(() => server.health.current.isHealthy);
  assert.equal((await server.rest('GET', `/sandboxes/${id}`)).body.status, 'recovery_decision_required');
  const { status, body: waiting } = await recover(server, 'wait');
  assert.deepEqual([status, waiting.status], [200, 'temporarily_unavailable']);
  const back = await until(server, 'one', 'running');
  assert.equal(back.started_at, stuck.started_at);
  assert.ok((await eventsOf(server, id)).includes('recovery_chosen'));
});

test('a restart that was chosen while the engine is away happens when it is back', async (t) => {
  const server = await startHealthy(t, { restSettings: { recoveryMs: 1 } });
  const made = await run(server);
  server.orchestrator.goAway();
  await until(server, 'one', 'recovery_decision_required');
  const { status, body: restarting } = await recover(server, 'restart');
  assert.deepEqual(
    [status, restarting.status, restarting.temporarily_unavailable_since],
    [200, 'starting', null],
  );
  server.orchestrator.comeBack();
  const back = await until(server, 'one', 'running');
  assert.ok(back.started_at > made.started_at);
  assert.deepEqual(
    (await listRuns(server.database, made.id)).map((each) => [each.started_at, each.ended_at === null]),
    [
      [made.started_at, false],
      [back.started_at, true],
    ],
  );
});

test('a stop that was chosen while the engine is away happens when it is back', async (t) => {
  const server = await startHealthy(t);
  const made = await run(server);
  server.orchestrator.goAway();
  await until(server, 'one', 'temporarily_unavailable');
  const refused = await server.rest('POST', `/sandboxes/${made.id}/stop`);
  assert.deepEqual([refused.status, refused.body.error.message], [502, 'orchestrator unreachable']);
  assert.match(refused.body.error.details.reason, /svc recover NAME stop/);
  const { body: stopping } = await recover(server, 'stop');
  assert.equal(stopping.status, 'stopping');
  server.orchestrator.comeBack();
  await until(server, 'one', 'stopped');
  assert.equal((await server.orchestrator.get(made.id))?.state, 'stopped');
});

test('a choice by another name is refused', async (t) => {
  const server = await startHealthy(t);
  await run(server);
  server.orchestrator.goAway();
  await until(server, 'one', 'temporarily_unavailable');
  assert.equal((await recover(server, 'explode')).status, 400);
  assert.equal((await recover(server, 'wait', 'ghost')).status, 404);
});

test('a sandbox that ended during the outage is seen to have ended', async (t) => {
  const server = await startHealthy(t, { restSettings: { recoveryMs: 1 } });
  const made = await run(server);
  server.orchestrator.goAway();
  await until(server, 'one', 'recovery_decision_required');
  server.orchestrator.end(made.id, 'host_restart', 'the host was restarted');
  server.orchestrator.comeBack();
  const ended = await until(server, 'one', 'failed');
  assert.equal(ended.last_failure_message, 'the host was restarted');
  assert.equal((await listRuns(server.database, made.id))[0]?.ended_at, ended.stopped_at);
});

/** A server that ended while its engine was away for too long. */
async function stopAfterDeadline(t: TestContext) {
  const folder = await makeFolder(t);
  const orchestrator = new FakeOrchestrator();
  const first = await startHealthy(t, { folder, orchestrator });
  await run(first);
  orchestrator.goAway();
  await until(first, 'one', 'temporarily_unavailable');
  await endRecovery(first);
  await first.close();
  return { folder, orchestrator };
}

test('the deadline passes also while no server runs', async (t) => {
  const { folder, orchestrator } = await stopAfterDeadline(t);
  const second = await startTestServer(t, { folder, orchestrator });
  await until(second, 'one', 'recovery_decision_required');
});

test('a server that starts after the deadline asks the engine before it asks for a decision', async (t) => {
  const { folder, orchestrator } = await stopAfterDeadline(t);
  orchestrator.comeBack();
  const second = await startHealthy(t, { folder, orchestrator });
  await until(second, 'one', 'running');
});

test('a start under way when the engine goes away is finished when it is back', async (t) => {
  const server = await startHealthy(t);
  server.orchestrator.failAtChange = 1;
  await server.rest('POST', '/sandboxes?start=true', { body: body('one') });
  await until(server, 'one', 'running');
});

test('JSON-RPC start of a sandbox that waits for a decision is the decision', async (t) => {
  const server = await startHealthy(t, { restSettings: { recoveryMs: 1 } });
  await run(server);
  server.orchestrator.goAway();
  await until(server, 'one', 'recovery_decision_required');
  server.orchestrator.comeBack();
  await waitUntil(() => server.health.current.isHealthy);
  const { result } = await server.call('sandbox.start', { sandbox: 'one' });
  assert.equal(result, 'Sandbox one started successfully');
  await until(server, 'one', 'running');
});
