import assert from 'node:assert/strict';
import { test } from 'node:test';
import { waitUntil } from '@svc/contract/testing';
import { body, startHealthy } from '../../testing/sandboxes.ts';
import type { TestServer } from '../../testing/test-server.ts';

/** What the events of this type say, oldest first. */
async function eventsOf({ database }: TestServer, type: string): Promise<readonly object[]> {
  const events = database.selectFrom('events').select('payload').where('event_type', '=', type);
  const rows = await events.orderBy('sequence').execute();
  return rows.map(({ payload }) => JSON.parse(payload) as object);
}

const RUNNING = '/sandboxes?start=true&wait_for=running';

test('how long a sandbox may run is changed in the engine, in its record and in the audit log', async (t) => {
  const server = await startHealthy(t);
  const { body: made } = await server.rest('POST', RUNNING, { body: body('one') });
  assert.equal(made.ends_at, null);
  const path = `/sandboxes/${made.id}/lifecycle`;
  const held = async () => (await server.orchestrator.get(made.id))?.lifecycle;
  const first = await server.rest('PATCH', path, {
    body: { max_duration_secs: 3600, idle_timeout_secs: 60 },
  });
  assert.equal(first.status, 200, JSON.stringify(first.body));
  assert.equal(Date.parse(first.body.ends_at), Date.parse(made.started_at) + 3_600_000);
  assert.partialDeepStrictEqual(first.body.spec.lifecycle, {
    max_duration_secs: 3600,
    idle_timeout_secs: 60,
  });
  assert.deepEqual(await held(), { max_duration_secs: 3600, idle_timeout_secs: 60 });
  const second = await server.rest('PATCH', path, { body: { max_duration_secs: null } });
  assert.equal(second.body.ends_at, null);
  assert.deepEqual(await held(), { max_duration_secs: null, idle_timeout_secs: 60 }, 'what is absent stays');
  await server.rest('PATCH', path, { body: { max_duration_secs: null } });
  const events = await eventsOf(server, 'sandbox_lifecycle_changed');
  assert.equal(events.length, 2, 'what changes nothing is no event');
});

test('an end counted from now holds for a sandbox that runs, and not beside the other way to say it', async (t) => {
  const server = await startHealthy(t);
  const { body: made } = await server.rest('POST', RUNNING, { body: body('one') });
  const path = `/sandboxes/${made.id}/lifecycle`;
  const before = Date.now();
  const { body: changed } = await server.rest('PATCH', path, { body: { ends_in_secs: 600 } });
  const left = Date.parse(changed.ends_at) - before;
  assert.ok(left > 598_000 && left < 600_000 + (Date.now() - before), String(left));
  const both = await server.rest('PATCH', path, { body: { ends_in_secs: 600, max_duration_secs: 600 } });
  assert.deepEqual([both.status, both.body.error.details.field], [400, 'ends_in_secs']);
  for (const wrong of [{ ends_in_secs: 0 }, { max_duration_secs: -1 }, { ephemeral: true }])
    assert.equal((await server.rest('PATCH', path, { body: wrong })).status, 400, JSON.stringify(wrong));
  await server.rest('POST', `/sandboxes/${made.id}/stop`);
  await waitUntil(async () => (await server.rest('GET', `/sandboxes/${made.id}`)).body.status === 'stopped');
  const late = await server.rest('PATCH', path, { body: { ends_in_secs: 600 } });
  assert.deepEqual([late.status, late.body.error.code], [409, 'invalid_state_transition']);
});

test('a change that the engine missed reaches it when it is back', async (t) => {
  const server = await startHealthy(t);
  const { body: made } = await server.rest('POST', RUNNING, { body: body('one') });
  await server.orchestrator.setLifecycle(made.id, { max_duration_secs: 5, idle_timeout_secs: null });
  server.orchestrator.goAway();
  await waitUntil(() => !server.health.current.isHealthy);
  server.orchestrator.comeBack();
  await waitUntil(
    async () => (await server.orchestrator.get(made.id))?.lifecycle?.max_duration_secs === null,
    { what: 'the engine is told' },
  );
});

test('an end that comes is announced once, and again when it was put off', async (t) => {
  const server = await startHealthy(t);
  const { body: made } = await server.rest('POST', RUNNING, { body: body('one') });
  const at = (seconds: number) => new Date(Date.now() + seconds * 1000).toISOString();
  const announced = async () => await eventsOf(server, 'sandbox_ending');
  const ending = { reason: 'idle_timeout' as const, at: at(60) };
  server.orchestrator.announceEnd(made.id, ending);
  await waitUntil(async () => (await announced()).length === 1, { what: 'the first' });
  server.orchestrator.announceEnd(made.id, {
    ...ending,
    at: new Date(Date.parse(ending.at) + 3).toISOString(),
  });
  server.orchestrator.announceEnd(made.id, { ...ending, at: at(90) });
  await waitUntil(async () => (await announced()).length >= 2, { what: 'the second' });
  assert.equal((await announced()).length, 2);
  assert.partialDeepStrictEqual((await announced())[0], {
    sandbox_id: made.id,
    reason: 'idle_timeout',
    ends_at: ending.at,
  });
});

test('keep-alive is refused for a sandbox that does not run', async (t) => {
  const server = await startHealthy(t);
  const { body: made } = await server.rest('POST', '/sandboxes', { body: body('one') });
  const { status, body: refused } = await server.rest('POST', `/sandboxes/${made.id}/keep-alive`);
  assert.deepEqual([status, refused.error.code], [409, 'sandbox_not_running'], JSON.stringify(refused));
});
