import assert from 'node:assert/strict';
import { test } from 'node:test';
import { waitUntil } from '@svc/contract/testing';
import { followEvents } from '../../testing/events.ts';
import { startWithPeople } from '../../testing/people.ts';

async function open(t: Parameters<typeof startWithPeople>[0]) {
  const people = await startWithPeople(t);
  const owner = await people.person('owner');
  const id = await people.organization('acme', { owner });
  await waitUntil(() => people.server.health.current.isHealthy);
  const key = await people.apiKey('acme');
  const pull = (body: unknown) => followEvents(people.server, 'POST', '/images/pull', { key, body });
  return { ...people, owner, id, key, pull };
}

test('a pull reports progress and the image, for the organization alone, and is recorded', async (t) => {
  const { server, pull, id, eventTypes } = await open(t);
  const events = await Array.fromAsync(pull({ reference: 'python' }));
  assert.deepEqual(events[0], {
    event: 'progress',
    data: { message: 'downloading image', done_bytes: 1, total_bytes: 2 },
  });
  const digest = `sha256:${'0'.repeat(64)}`;
  assert.deepEqual(events.at(-1), { event: 'done', data: { reference: 'python', digest, size_bytes: 2 } });
  assert.deepEqual(server.orchestrator.pulls, [
    { reference: 'python', policy: 'always', auth: null, scope: id, maxHeldBytes: null },
  ]);
  assert.deepEqual(await eventTypes(id), ['image_pulled']);
});

test('the password of the organization goes to the registry that it is for, and another one is refused', async (t) => {
  const { server, pull, owner, key } = await open(t);
  const credential = { registry_host: 'registry.example', username: 'u', password: 'p' };
  const put = await server.rest('PUT', '/orgs/acme/registries', { key: owner.key, body: credential });
  assert.equal(put.status, 200);
  await Array.fromAsync(pull({ reference: 'registry.example/app', pull_policy: 'if_missing' }));
  await Array.fromAsync(pull({ reference: 'other.example/app' }));
  const inline = { mode: 'inline', username: 'me', password: 'mine' };
  await Array.fromAsync(pull({ reference: 'other.example/app', registry: inline }));
  assert.deepEqual(
    server.orchestrator.pulls.map(({ auth, policy }) => [auth, policy]),
    [
      [{ username: 'u', password: 'p' }, 'if_missing'],
      [null, 'always'],
      [{ username: 'me', password: 'mine' }, 'always'],
    ],
  );
  const registry = { mode: 'specific', credential_id: put.body.id };
  const body = { reference: 'other.example/app', registry };
  const refused = await server.rest('POST', '/images/pull', { key, body });
  assert.deepEqual([refused.status, refused.body.error.code], [400, 'invalid_sandbox_config']);
});

test('a pull that fails ends with the error, and one without an engine does not begin', async (t) => {
  const { server, pull, key } = await open(t);
  const events = await Array.fromAsync(pull({ reference: 'missing' }));
  const last = events.at(-1) as { event: string; data: { error: { code: string } } };
  assert.deepEqual([last.event, last.data.error.code], ['error', 'image_not_found']);
  server.orchestrator.goAway();
  await waitUntil(() => !server.health.current.isHealthy);
  const { status } = await server.rest('POST', '/images/pull', { key, body: { reference: 'python' } });
  assert.equal(status, 502);
});

test('an organization pulls four images at once, and disconnecting ends a pull', async (t) => {
  const { server, pull, key } = await open(t);
  const pulls = Array.from({ length: 4 }, () => pull({ reference: 'slow' }));
  for (const one of pulls) assert.equal((await one.next()).value?.event, 'progress');
  const body = { reference: 'slow' };
  assert.equal((await server.rest('POST', '/images/pull', { key, body })).status, 429);
  await pulls[0]?.return(undefined);
  await waitUntil(() => server.orchestrator.fetching === 3, 'the end of one pull');
  const fifth = pull({ reference: 'python' });
  assert.equal((await fifth.next()).value?.event, 'progress');
  server.orchestrator.finishFetching();
  for (const one of [...pulls.slice(1), fifth]) {
    assert.equal((await Array.fromAsync(one)).at(-1)?.event, 'done');
  }
});

test('an organization lists its images and removes those that it does not use', async (t) => {
  const { server, pull, id, key, owner, organization, apiKey, eventTypes } = await open(t);
  await organization('other', { owner });
  const others = await apiKey('other');
  const reference = 'registry.example/app';
  const at = `/images/${encodeURIComponent(reference)}`;
  await Array.fromAsync(pull({ reference }));
  await Array.fromAsync(pull({ reference: 'python' }));
  const { body: images } = await server.rest('GET', '/images', { key });
  assert.deepEqual(
    images.map((image: Record<string, unknown>) => [
      image['references'],
      image['is_provided'],
      image['in_use'],
    ]),
    [
      [[reference], false, false],
      [['python'], true, false],
    ],
  );
  assert.equal((await server.rest('GET', '/quotas', { key })).body.image_storage_bytes, 2);
  assert.equal((await server.rest('DELETE', at, { key: others })).status, 404);
  const sandbox = { name: 'user', image: { type: 'oci', reference } };
  const path = '/sandboxes?start=true&wait_for=running';
  const made = await server.rest('POST', path, { key, body: sandbox });
  const refused = await server.rest('DELETE', at, { key });
  assert.deepEqual([refused.status, refused.body.error.code], [409, 'image_in_use']);
  await server.rest('POST', `/sandboxes/${made.body.id}/stop`, { key });
  await waitUntil(async () => {
    const { status } = await server.rest('DELETE', `/sandboxes/${made.body.id}`, { key });
    return status === 200 || status === 202 || status === 204;
  }, 'the end of the sandbox');
  await waitUntil(async () => (await server.rest('DELETE', at, { key })).status === 200, 'the removal');
  assert.equal((await server.rest('GET', '/images', { key })).body.length, 1);
  assert.ok((await eventTypes(id)).includes('image_removed'));
  assert.equal((await server.rest('DELETE', '/images/python', { key })).status, 404);
});
