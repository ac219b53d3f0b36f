import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { test } from 'node:test';
import { WORK_TOOLS } from '@svc/contract/mcp';
import { signKey } from '../../access/signed-keys.ts';
import { RandomGenerator } from '../../testing/random-generator.ts';
import { connectClient, textOf } from '../../testing/mcp-client.ts';
import { sampleOf } from '../../testing/sample-of-schema.ts';
import { startTestServer } from '../../testing/test-server.ts';

test('no tool and no resource of another namespace is open to a key', async (t) => {
  const signingKey = randomBytes(32);
  const { url } = await startTestServer(t, { signingKey });
  const keyOf = (namespace: string) =>
    signKey(signingKey, { namespace, createdAt: new Date(), expiresAt: null });
  const owner = await connectClient(t, url, { authorization: `Bearer ${await keyOf('default')}` });
  const start = { sandbox: 'target', config: { image: 'python' } };
  await owner.client.callTool({ name: 'sandbox_start', arguments: start });
  const { client } = await connectClient(t, url, { authorization: `Bearer ${await keyOf('team')}` });
  for (const [name, { input }] of Object.entries(WORK_TOOLS)) {
    const sample = sampleOf(input, new RandomGenerator(1)) as Record<string, unknown>;
    const result = await client.callTool({ name, arguments: { ...sample, namespace: 'default' } });
    assert.equal(result.isError, true, name);
    assert.match(textOf(result), /^Access denied to namespace 'default'\. .*"team"/, name);
  }
  await assert.rejects(client.readResource({ uri: 'svc://sandboxes/target/files/etc/passwd' }), {
    code: -32_602,
    message: /Access denied to namespace 'default'/,
  });
});

test('changes by tools are recorded like others, with their actor', async (t) => {
  const signingKey = randomBytes(32);
  const server = await startTestServer(t, { signingKey });
  const key = await signKey(signingKey, { namespace: 'team', createdAt: new Date(), expiresAt: null });
  const { client } = await connectClient(t, server.url, { authorization: `Bearer ${key}` });
  const place = { sandbox: 'one', namespace: 'team' };
  const call = async (name: string, input: object = {}) => {
    const result = await client.callTool({ name, arguments: { ...place, ...input } });
    assert.equal(result.isError, undefined, textOf(result));
  };
  await call('sandbox_start', { config: { image: 'python' } });
  await call('sandbox_set_lifetime', { max_duration_secs: 60, ends_in_secs: null });
  await call('sandbox_remove');
  const events = await server.database
    .selectFrom('events')
    .select(['event_type', 'actor'])
    .where('event_type', 'like', 'sandbox_%')
    .execute();
  assert.ok(events.some(({ event_type: type }) => type === 'sandbox_lifecycle_changed'));
  const removal = events.find(({ event_type: type }) => /delet|remov/.test(type));
  assert.match(JSON.stringify(removal?.actor), /server key for team/, JSON.stringify(events));
});

test('an unused namespace has no sandboxes and no snapshots', async (t) => {
  const { url } = await startTestServer(t);
  const { client } = await connectClient(t, url);
  const list = async (name: string) =>
    (await client.callTool({ name, arguments: { namespace: 'fresh' } })).structuredContent;
  assert.deepEqual(await list('sandbox_list'), { sandboxes: [], next_cursor: null });
  assert.deepEqual(await list('sandbox_list_snapshots'), { snapshots: [], next_cursor: null });
});
