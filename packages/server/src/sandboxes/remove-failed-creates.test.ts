import assert from 'node:assert/strict';
import { test } from 'node:test';
import { waitUntil } from '@svc/contract/testing';
import { body, eventsOf, startHealthy, until } from '../testing/sandboxes.ts';
import type { TestServer } from '../testing/test-server.ts';

const make = async (server: TestServer, name: string, reference = 'x') =>
  (await server.rest('POST', '/sandboxes?start=true', { body: body(name, { reference }) })).body;

const statusOf = async (server: TestServer, name: string) =>
  (await server.rest('GET', `/sandboxes/by-name/${name}`)).status;

test('a sandbox that never ran is removed some time after it failed, and one that ran is kept', async (t) => {
  const server = await startHealthy(t, { restSettings: { keepFailedMs: 100 } });
  await server.rest('POST', '/sandboxes', { body: body('waiting') });
  const { id: ranId } = await make(server, 'ran');
  await until(server, 'ran', 'running');
  server.orchestrator.end(ranId, 'crashed', 'it broke');
  await until(server, 'ran', 'failed');
  const { id } = await make(server, 'never', 'missing');
  await waitUntil(async () => (await statusOf(server, 'never')) === 404, 'it is removed');
  assert.deepEqual((await eventsOf(server, id)).slice(-1), ['sandbox_deleted']);
  const row = await server.database
    .selectFrom('events')
    .selectAll()
    .where('event_type', '=', 'sandbox_deleted')
    .executeTakeFirstOrThrow();
  assert.ok(JSON.stringify(row).includes('retention'), 'who removed it is said');
  // Made before it, so they would have gone before it.
  assert.deepEqual([await statusOf(server, 'ran'), await statusOf(server, 'waiting')], [200, 200]);
});

test('a recent failed create is kept, and all of them when the operator says so', async (t) => {
  for (const keepFailedMs of [60_000, null]) {
    const server = await startHealthy(t, { restSettings: { keepFailedMs } });
    await make(server, 'never', 'missing');
    await until(server, 'never', 'failed');
  }
});
