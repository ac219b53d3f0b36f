import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { waitUntil } from '@svc/contract/testing';
import type { FakeOrchestrator } from '../testing/fake-orchestrator.ts';
import { fakeFleet } from '../testing/fake-fleet.ts';
import { body, until } from '../testing/sandboxes.ts';
import { findNode } from '../store/find-node.ts';
import { openStore } from '../store/open-store.ts';
import { sqliteDialect } from '../store/sqlite.ts';
import { makeFolder, startTestServer, type TestServer } from '../testing/test-server.ts';
import { join } from 'node:path';

/** A server over a fleet of two nodes in memory. */
async function startFleet(
  t: TestContext,
): Promise<{ readonly server: TestServer; readonly members: ReadonlyMap<string, FakeOrchestrator> }> {
  const database = await openStore(sqliteDialect(join(await makeFolder(t), 'store.db')));
  const { ports, members } = fakeFleet(['a', 'b'], async (id) => await findNode(database, id));
  const server = await startTestServer(t, { database, ports, isAlone: true });
  await waitUntil(() => server.health.current.isHealthy);
  for (const member of members.values()) await member.pullImage({ reference: 'x' }, () => undefined);
  return { server, members };
}

const run = async (server: TestServer, name: string) =>
  (await server.rest('POST', '/sandboxes?start=true&wait_for=running', { body: body(name) })).body;

test('sandboxes are spread over nodes, and rows, answers, events and capabilities name the node', async (t) => {
  const { server } = await startFleet(t);
  const one = await run(server, 'one');
  const two = await run(server, 'two');
  assert.deepEqual(new Set([one.node, two.node]), new Set(['a', 'b']));
  const listed = (await server.rest('GET', '/sandboxes')).body.data;
  assert.deepEqual(
    new Map(listed.map(({ name, node }: { name: string; node: string }) => [name, node])),
    new Map([
      ['one', one.node],
      ['two', two.node],
    ]),
  );
  const { body: events } = await server.rest(
    'GET',
    `/events?event_type=sandbox_started&sandbox_id=${one.id}`,
  );
  assert.equal(events.data[0].payload.node, one.node);
  const { nodes } = (await server.rest('GET', '/capabilities')).body;
  assert.deepEqual(
    nodes.map(({ name, is_available: isAvailable, sandboxes }: never) => [name, isAvailable, sandboxes]),
    [
      ['a', true, 1],
      ['b', true, 1],
    ],
  );
  const metrics = await (await fetch(`${server.url}/metrics`)).text();
  assert.match(metrics, /^svc_disk_free_bytes\{node="b"\} \d+$/m);
});

test('when a node is away only its sandboxes are unavailable, and they recover with it', async (t) => {
  const { server, members } = await startFleet(t);
  const made = [await run(server, 'one'), await run(server, 'two')];
  const lost = made.find(({ node }) => node === 'b');
  const kept = made.find(({ node }) => node === 'a');
  members.get('b')?.goAway();
  await until(server, lost.name, 'temporarily_unavailable');
  const refused = await server.rest('POST', `/sandboxes/${lost.id}/stop`);
  assert.equal(refused.status, 502);
  assert.match(refused.body.error.details.reason, /node b is away/);
  assert.equal((await server.rest('GET', `/sandboxes/${kept.id}`)).body.status, 'running');
  assert.equal((await server.rest('POST', `/sandboxes/${kept.id}/stop`)).status, 200);
  await until(server, kept.name, 'stopped');
  assert.equal((await run(server, 'three')).node, 'a');
  members.get('b')?.comeBack();
  assert.equal((await until(server, lost.name, 'running')).node, 'b');
});

test('a sandbox that found no room on its node is made on another', async (t) => {
  const { server, members } = await startFleet(t);
  const a = members.get('a');
  const b = members.get('b');
  assert.ok(a && b);
  a.capacity = 0;
  b.capacity = 0;
  const { body: made } = await server.rest('POST', '/sandboxes?start=true', { body: body('one') });
  await waitUntil(
    async () =>
      (await server.rest('GET', `/sandboxes/${made.id}`)).body.status_reason === 'insufficient_capacity',
  );
  b.capacity = 1;
  await a
    .create({ id: 'someone-elses', spec: { image: { type: 'oci', reference: 'x' } } }, () => undefined)
    .catch(() => undefined);
  assert.equal((await until(server, 'one', 'running')).node, 'b');
});
