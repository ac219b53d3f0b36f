import assert from 'node:assert/strict';
import { test } from 'node:test';
import { makeEd25519Pair } from '../../transports/ssh/ed25519-pair.ts';
import { startTestServer } from '../../testing/test-server.ts';
import { startWithPeople } from '../../testing/people.ts';

function makeLine(): string {
  return makeEd25519Pair().publicKey;
}

test('a user registers, lists and revokes keys, and their organizations hear of it', async (t) => {
  const { server, person, organization, eventTypes } = await startWithPeople(t);
  const ada = await person('ada');
  const id = await organization('acme', { member: ada });
  const { key } = ada;
  const line = makeLine();
  const body = { name: 'laptop', public_key: `${line} ada@laptop` };
  const made = await server.rest('POST', '/users/me/ssh-keys', { key, body });
  assert.equal(made.status, 200, JSON.stringify(made.body));
  assert.equal(made.body.public_key, line.trim());
  assert.match(made.body.fingerprint, /^SHA256:/);
  assert.equal(made.body.last_used_at, null);
  assert.deepEqual((await server.rest('GET', '/users/me/ssh-keys', { key })).body, [made.body]);
  const again = await server.rest('POST', '/users/me/ssh-keys', { key, body: { ...body, name: 'twice' } });
  assert.deepEqual([again.status, again.body.error.code], [409, 'name_already_exists']);
  const path = `/users/me/ssh-keys/${made.body.id}`;
  const bob = await person('bob');
  assert.equal((await server.rest('DELETE', path, { key: bob.key })).status, 404);
  assert.equal((await server.rest('DELETE', path, { key })).status, 200);
  assert.equal((await server.rest('DELETE', path, { key })).status, 404);
  assert.deepEqual((await server.rest('GET', '/users/me/ssh-keys', { key })).body, []);
  assert.deepEqual(await eventTypes(id), ['ssh_key_added', 'ssh_key_removed']);
});

test('an invalid public key is refused with the name of its field', async (t) => {
  const server = await startTestServer(t);
  for (const publicKey of ['nonsense', makeEd25519Pair().privateKey]) {
    const body = { name: 'x', public_key: publicKey };
    const { status, body: answer } = await server.rest('POST', '/users/me/ssh-keys', { body });
    assert.deepEqual([status, answer.error.details.field], [400, 'public_key']);
    assert.ok(!JSON.stringify(answer).includes(publicKey.slice(40, 80)) || publicKey.length < 40);
  }
});

test('an API key has no SSH keys, and in development mode everybody has those of the developer', async (t) => {
  const { server, organization, apiKey } = await startWithPeople(t);
  await organization('acme', {});
  assert.equal((await server.rest('GET', '/users/me/ssh-keys', { key: await apiKey('acme') })).status, 401);
  const dev = await startTestServer(t);
  const body = { name: 'mine', public_key: makeLine() };
  assert.equal((await dev.rest('POST', '/users/me/ssh-keys', { body })).status, 200);
});
