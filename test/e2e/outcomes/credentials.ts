import assert from 'node:assert/strict';
import { generateKeyPairSync } from 'node:crypto';
import { changeStore } from '../../../packages/server/src/local-commands/local-store.ts';
import { createApiKey, createToken } from '../../../packages/server/src/store/api-keys-and-tokens.ts';
import { Outcomes } from './outcomes.ts';
import { UNKNOWN_ID, type Reply } from './world.ts';

type Body = Reply['body'];
const NOBODYS = { params: { id: UNKNOWN_ID } };
const NEW = { name: 'test', createdBy: null, expiresAt: null };
const MAX_API_KEYS = 1000;
const MAX_TOKENS = 100;
const MAX_SSH_KEYS = 100;

/** API keys, personal access tokens, SSH keys and passwords for registries. */
export const credentials = new Outcomes();

credentials.phase('keys, tokens and registries');

credentials.add('apiKeys.create', 'ok', async (call, { acme }) => {
  const reply = await call('apiKeys.create', { body: { name: 'made' } });
  assert.equal((await call('organizations.own', { as: reply.body.key })).body.slug, acme.slug);
  return reply;
});
credentials.add('apiKeys.create', 'quota_exceeded', async (call, world) => {
  const slug = world.fresh('org');
  const { id } = (await call('organizations.create', { body: { name: 'Packed', slug } })).body;
  // In the store itself: a thousand requests would take seconds.
  await changeStore(world.place, async (db) => {
    for (let count = 0; count < MAX_API_KEYS; count += 1) await createApiKey(db, id, NEW);
  });
  return await call('apiKeys.create', { params: { slug }, body: { name: 'one too many' } });
});
credentials.add('apiKeys.list', 'ok', async (call) => {
  const { id, key } = (await call('apiKeys.create', { body: { name: 'listed' } })).body;
  const reply = await call('apiKeys.list', { query: { limit: 100 } });
  assert.ok(reply.body.data.some((each: Body) => each.id === id));
  assert.ok(!JSON.stringify(reply.body).includes(key));
  return reply;
});
credentials.add('apiKeys.list', 'invalid_cursor', (call) =>
  call('apiKeys.list', { query: { cursor: 'none' } }),
);
credentials.add('apiKeys.revoke', 'ok', async (call) => {
  const { id, key } = (await call('apiKeys.create', { body: { name: 'leaving' } })).body;
  const reply = await call('apiKeys.revoke', { params: { id } });
  assert.equal((await call('organizations.own', { as: key })).status, 401);
  return reply;
});
credentials.add('apiKeys.revoke', 'not_found', (call) => call('apiKeys.revoke', NOBODYS));

credentials.add('tokens.create', 'ok', async (call, { acme }) => {
  const reply = await call('tokens.create', { body: { name: 'made' } });
  assert.equal((await call('organizations.get', { as: reply.body.token })).body.slug, acme.slug);
  return reply;
});
credentials.add('tokens.create', 'quota_exceeded', async (call, world) => {
  const { id, token: as } = await world.person();
  await changeStore(world.place, async (db) => {
    for (let count = 1; count < MAX_TOKENS; count += 1) await createToken(db, id, NEW);
  });
  return await call('tokens.create', { body: { name: 'one too many' }, as });
});
credentials.add('tokens.list', 'ok', async (call) => {
  const { id, token } = (await call('tokens.create', { body: { name: 'listed' } })).body;
  const reply = await call('tokens.list');
  assert.ok(reply.body.some((each: Body) => each.id === id));
  assert.ok(!JSON.stringify(reply.body).includes(token));
  return reply;
});
credentials.add('tokens.revoke', 'ok', async (call) => {
  const { id, token } = (await call('tokens.create', { body: { name: 'leaving' } })).body;
  const reply = await call('tokens.revoke', { params: { id } });
  assert.equal((await call('users.get', { as: token })).status, 401);
  return reply;
});
credentials.add('tokens.revoke', 'not_found', (call) => call('tokens.revoke', NOBODYS));

credentials.add('registries.put', 'ok', async (call) => {
  const body = { registry_host: 'one.example', username: 'ann', password: 'hidden' };
  const reply = await call('registries.put', { body });
  assert.deepEqual([reply.body.registry_host, reply.body.username], ['one.example', 'ann']);
  assert.ok(!JSON.stringify(reply.body).includes('hidden'));
  return reply;
});
credentials.add('registries.list', 'ok', async (call) => {
  const body = { registry_host: 'two.example', username: 'ann', password: 'hidden' };
  const { id } = (await call('registries.put', { body })).body;
  const reply = await call('registries.list');
  assert.ok(reply.body.some((each: Body) => each.id === id));
  assert.ok(!JSON.stringify(reply.body).includes('hidden'));
  return reply;
});
credentials.add('registries.remove', 'ok', async (call) => {
  const body = { registry_host: 'three.example', username: 'ann', password: 'hidden' };
  const { id } = (await call('registries.put', { body })).body;
  const reply = await call('registries.remove', { params: { id } });
  assert.ok(!(await call('registries.list')).body.some((each: Body) => each.id === id));
  return reply;
});
credentials.add('registries.remove', 'not_found', (call) => call('registries.remove', NOBODYS));

const SECRET = { value: 'hidden', allowed_hosts: [{ type: 'exact', value: 'api.example' }] };
credentials.add('secrets.put', 'ok', async (call) => {
  const reply = await call('secrets.put', { params: { name: 'ONE' }, body: SECRET });
  assert.equal(reply.body.name, 'ONE');
  assert.ok(!JSON.stringify(reply.body).includes('hidden'));
  return reply;
});
credentials.add('secrets.list', 'ok', async (call) => {
  await call('secrets.put', { params: { name: 'TWO' }, body: SECRET });
  const reply = await call('secrets.list');
  assert.ok(reply.body.some((each: Body) => each.name === 'TWO'));
  assert.ok(!JSON.stringify(reply.body).includes('hidden'));
  return reply;
});
credentials.add('secrets.remove', 'ok', async (call) => {
  await call('secrets.put', { params: { name: 'THREE' }, body: SECRET });
  const reply = await call('secrets.remove', { params: { name: 'THREE' } });
  assert.ok(!(await call('secrets.list')).body.some((each: Body) => each.name === 'THREE'));
  return reply;
});
credentials.add('secrets.remove', 'not_found', (call) =>
  call('secrets.remove', { params: { name: 'NONE' } }),
);

credentials.add('sshKeys.create', 'ok', async (call) => {
  const reply = await call('sshKeys.create', { body: { name: 'laptop', public_key: sshKey() } });
  assert.match(reply.body.fingerprint, /^SHA256:/);
  return reply;
});
credentials.add('sshKeys.create', 'name_already_exists', async (call) => {
  const body = { name: 'laptop', public_key: sshKey() };
  assert.equal((await call('sshKeys.create', { body })).status, 200);
  return await call('sshKeys.create', { body });
});
credentials.add('sshKeys.create', 'quota_exceeded', async (call, world) => {
  const { token: as } = await world.person();
  for (let count = 0; count < MAX_SSH_KEYS; count += 1) {
    const { status } = await call('sshKeys.create', { body: { name: 'key', public_key: sshKey() }, as });
    assert.equal(status, 200, `key ${count}`);
  }
  return await call('sshKeys.create', { body: { name: 'key', public_key: sshKey() }, as });
});
credentials.add('sshKeys.list', 'ok', async (call) => {
  const { id } = (await call('sshKeys.create', { body: { name: 'listed', public_key: sshKey() } })).body;
  const reply = await call('sshKeys.list');
  assert.ok(reply.body.some((each: Body) => each.id === id));
  return reply;
});
credentials.add('sshKeys.remove', 'ok', async (call) => {
  const { id } = (await call('sshKeys.create', { body: { name: 'leaving', public_key: sshKey() } })).body;
  const reply = await call('sshKeys.remove', { params: { id } });
  assert.ok(!(await call('sshKeys.list')).body.some((each: Body) => each.id === id));
  return reply;
});
credentials.add('sshKeys.remove', 'not_found', (call) => call('sshKeys.remove', NOBODYS));

/** A new one, as OpenSSH writes it. */
function sshKey(): string {
  const { publicKey } = generateKeyPairSync('ed25519');
  const point = Buffer.from(publicKey.export({ format: 'jwk' }).x ?? '', 'base64url');
  const fields = [Buffer.from('ssh-ed25519'), point].flatMap((field) => {
    const length = Buffer.alloc(4);
    length.writeUInt32BE(field.length);
    return [length, field];
  });
  return `ssh-ed25519 ${Buffer.concat(fields).toString('base64')}`;
}
