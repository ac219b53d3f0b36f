import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { waitUntil } from '@svc/contract/testing';
import { startWithPeople } from '../testing/people.ts';
import { body } from '../testing/sandboxes.ts';

/** Two organizations with a sandbox each, on a host whose disk is nearly full. */
async function startShort(t: TestContext) {
  const people = await startWithPeople(t);
  const { server } = people;
  const owner = await people.person('owner');
  await waitUntil(() => server.health.current.isHealthy);
  const keys: string[] = [];
  for (const slug of ['acme', 'other']) {
    await people.organization(slug, { owner });
    const key = await people.apiKey(slug);
    const path = '/sandboxes?start=true&wait_for=running';
    assert.equal((await server.rest('POST', path, { key, body: body(`box-of-${slug}`) })).status, 200);
    keys.push(key);
  }
  const [key = ''] = keys;
  const create = () => server.rest('POST', '/sandboxes', { key, body: body('more') });
  server.orchestrator.isShort = true;
  await waitUntil(async () => {
    const { status, body: made } = await create();
    if (status === 200) await server.rest('DELETE', `/sandboxes/${made.id}`, { key });
    return status === 507;
  }, 'a create that is refused');
  return { server, key, create };
}

test('calls that take space are refused with the largest users of space in the organization of the caller', async (t) => {
  const { server, key, create } = await startShort(t);
  const { error } = (await create()).body;
  assert.equal(error.code, 'insufficient_storage');
  assert.match(error.message, /Your organization takes 1\.00 GiB, most of it sandbox box-of-acme 1\.00 GiB$/);
  const [own, ...others] = error.details.used_by;
  assert.deepEqual([own.kind, own.name, own.bytes, others], ['sandbox', 'box-of-acme', 1024 ** 3, []]);
  assert.equal(error.details.used_bytes, 1024 ** 3);
  const { body: box } = await server.rest('GET', '/sandboxes/by-name/box-of-acme', { key });
  const asked = [
    server.rest('POST', `/sandboxes/${box.id}/start`, { key }),
    server.rest('POST', '/images/pull', { key, body: { reference: 'python' } }),
    server.rest('POST', '/snapshots', { key, body: { kind: 'disk', sandbox_id: box.id, name: 'copy' } }),
  ];
  for (const reply of await Promise.all(asked))
    assert.deepEqual([reply.status, reply.body.error.code], [507, 'insufficient_storage']);
});

test('reads, stops and removals work on a full host, and all calls once there is space', async (t) => {
  const { server, key, create } = await startShort(t);
  const { body: box } = await server.rest('GET', '/sandboxes/by-name/box-of-acme', { key });
  assert.equal((await server.rest('POST', `/sandboxes/${box.id}/stop`, { key })).status, 200);
  const stateOf = async () => (await server.rest('GET', `/sandboxes/${box.id}`, { key })).body.status;
  await waitUntil(async () => (await stateOf()) === 'stopped');
  assert.equal((await server.rest('DELETE', `/sandboxes/${box.id}`, { key })).status, 200);
  server.orchestrator.isShort = false;
  assert.equal((await create()).status, 200);
});
