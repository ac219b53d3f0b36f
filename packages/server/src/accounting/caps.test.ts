import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import type { Database, Tables } from '../store/database.ts';
import type { Insertable } from 'kysely';
import { insertSnapshotOperation } from '../store/snapshots.ts';
import type { RestReply } from '../testing/test-server.ts';
import { MAX_API_KEYS, MAX_INVITES, MAX_PENDING_SNAPSHOTS, MAX_TOKENS } from './caps.ts';
import { startWithPeople } from '../testing/people.ts';

const PAST = '2026-01-01T00:00:00.000Z';
const FUTURE = '2999-01-01T00:00:00.000Z';

function assertFull({ status, body }: RestReply, limit: string, maximum: number): void {
  assert.equal(status, 429, JSON.stringify(body));
  assert.equal(body.error.code, 'quota_exceeded');
  assert.deepEqual(body.error.details, { limit, value: maximum + 1, maximum });
}

test('an organization has so many API keys; revoked and expired ones do not count', async (t) => {
  const { server, person, organization, eventTypes } = await startWithPeople(t);
  const owner = await person('o');
  const id = await organization('acme', { owner });
  await fill(server.database, 'api_keys', MAX_API_KEYS - 1, () => ({ ...credential(), organization_id: id }));
  await fill(server.database, 'api_keys', 1, () => ({
    ...credential(),
    organization_id: id,
    revoked_at: PAST,
  }));
  await fill(server.database, 'api_keys', 1, () => ({
    ...credential(),
    organization_id: id,
    expires_at: PAST,
  }));
  const create = () => server.rest('POST', '/orgs/acme/api-keys', { key: owner.key, body: { name: 'x' } });
  assert.equal((await create()).status, 200);
  assertFull(await create(), 'max_api_keys', MAX_API_KEYS);
  assert.deepEqual(await eventTypes(id), ['api_key_created', 'quota_exceeded']);
});

test('a user has so many tokens, also when many are asked for at once', async (t) => {
  const { server, person } = await startWithPeople(t);
  const { id, key } = await person('o');
  await fill(server.database, 'tokens', MAX_TOKENS - 3, () => ({ ...credential(), user_id: id }));
  const create = () => server.rest('POST', '/users/me/pats', { key, body: { name: 'x' } });
  const answers = await Promise.all(Array.from({ length: 5 }, create));
  assert.equal(answers.filter(({ status }) => status === 200).length, 2);
  assertFull(await create(), 'max_tokens', MAX_TOKENS);
});

test('an organization has so many open invites, and one that is refreshed is no further one', async (t) => {
  const { server, person, organization } = await startWithPeople(t);
  const owner = await person('o');
  const id = await organization('acme', { owner });
  const invitation = (expires: string) => (): Insertable<Tables['invites']> => ({
    id: randomUUID(),
    organization_id: id,
    email: `${randomUUID()}@example.com`,
    role: 'member',
    token_hash: randomUUID(),
    invited_by: owner.id,
    created_at: PAST,
    expires_at: expires,
  });
  await fill(server.database, 'invites', MAX_INVITES - 1, invitation(FUTURE));
  await fill(server.database, 'invites', 1, invitation(PAST));
  const invite = (email: string) =>
    server.rest('POST', '/orgs/acme/invites', { key: owner.key, body: { email } });
  assert.equal((await invite('a@example.com')).status, 200);
  assert.equal((await invite('a@example.com')).status, 200);
  assertFull(await invite('b@example.com'), 'max_invites', MAX_INVITES);
});

test('an organization has so many snapshots waiting to be made', async (t) => {
  const { server, organization, apiKey } = await startWithPeople(t);
  const id = await organization('acme', {});
  const key = await apiKey('acme');
  const image = { type: 'oci', reference: 'python' };
  const { body: sandbox } = await server.rest('POST', '/sandboxes', { key, body: { name: 'a', image } });
  await server.database.updateTable('sandboxes').set({ observed: 'stopped' }).execute();
  // The sandbox does not exist and the work is leased to another server, so that no worker takes them up.
  for (let count = 0; count < MAX_PENDING_SNAPSHOTS; count += 1) {
    await insertSnapshotOperation(server.database, {
      organizationId: id,
      snapshotName: `s-${count}`,
      sandboxId: randomUUID(),
      sandboxName: 'gone',
      labels: {},
      shouldReplace: false,
    });
  }
  await server.database
    .updateTable('snapshot_operations')
    .set({ status: 'in_progress', claimed_by: 'other', claimed_until: FUTURE })
    .execute();
  const body = { kind: 'disk', sandbox_id: sandbox.id, name: 'one-more' };
  assertFull(
    await server.rest('POST', '/snapshots', { key, body }),
    'max_pending_snapshots',
    MAX_PENDING_SNAPSHOTS,
  );
});

function credential() {
  return {
    id: randomUUID(),
    name: 'filled',
    hash: randomUUID(),
    suffix: '',
    created_by: null,
    created_at: PAST,
    expires_at: null,
    revoked_at: null,
    last_used_at: null,
  };
}

async function fill<Table extends 'api_keys' | 'tokens' | 'invites'>(
  database: Database,
  table: Table,
  count: number,
  row: () => Insertable<Tables[Table]>,
): Promise<void> {
  const rows = Array.from({ length: count }, row);
  for (let at = 0; at < rows.length; at += 100)
    await database
      .insertInto(table as 'api_keys')
      .values(rows.slice(at, at + 100) as Insertable<Tables['api_keys']>[])
      .execute();
}
