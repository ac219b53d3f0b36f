import assert from 'node:assert/strict';
import { test } from 'node:test';
import { waitUntil } from '@svc/contract/testing';
import { startChannelServer, type ChannelServer } from '../../testing/channel-server.ts';
import { closeOf, openChannel } from '../../testing/channel.ts';

interface AuditEvent {
  readonly type: string;
  readonly actor: { readonly kind: string };
  readonly payload: { readonly command: string; readonly sandbox_id: string };
}

async function eventsOf(server: ChannelServer): Promise<readonly AuditEvent[]> {
  const rows = await server.database.selectFrom('events').selectAll().orderBy('sequence').execute();
  return rows.map((row) => ({
    type: row.event_type,
    actor: JSON.parse(row.actor) as AuditEvent['actor'],
    payload: JSON.parse(row.payload) as AuditEvent['payload'],
  }));
}

test('every process that is asked for is in the audit log, without its environment', async (t) => {
  const server = await startChannelServer(t);
  const address = await server.addSandbox();
  const { channel } = await openChannel(t, address);
  await channel.run({ cmd: 'sh', args: ['-c', 'true'], env: { SECRET: 'hush' } });
  await channel.run({ cmd: 'echo', args: ['x'.repeat(1000)] });
  await assert.rejects(channel.exec({ cmd: 'no-such-program' }));
  await waitUntil(async () => (await eventsOf(server)).length === 3);
  const events = await eventsOf(server);
  assert.deepEqual(
    events.map(({ type, actor }) => `${type} by ${actor.kind}`),
    events.map(() => 'exec_started by api_key'),
  );
  assert.deepEqual(
    events.map(({ payload }) => payload.command),
    ['sh -c true', `echo ${'x'.repeat(251)}…`, 'no-such-program'],
  );
  assert.ok(events.every(({ payload }) => payload.sandbox_id === address.sandboxId));
  assert.ok(!JSON.stringify(events).includes('hush'));
});

test('a process that is to outlive its client is in the audit log too', async (t) => {
  const server = await startChannelServer(t);
  const { channel } = await openChannel(t, await server.addSandbox());
  const leave = new AbortController();
  const starting = channel.detached.start({ key: 'k', cmd: 'sh', args: ['-c', 'true'] }, leave.signal);
  await waitUntil(async () => (await eventsOf(server)).length === 1);
  assert.equal((await eventsOf(server))[0]?.payload.command, 'sh -c true');
  // This sandbox knows nothing of such processes, and does not answer.
  leave.abort(new Error('enough'));
  await assert.rejects(starting, /enough/);
});

test('events of many channels at once form one unbroken chain', async (t) => {
  const server = await startChannelServer(t);
  const address = await server.addSandbox();
  const channels = await Promise.all(Array.from({ length: 5 }, () => openChannel(t, address)));
  await Promise.all(channels.flatMap(({ channel }) => [1, 2, 3].map(() => channel.run({ cmd: 'true' }))));
  await waitUntil(async () => (await eventsOf(server)).length === 15);
  const rows = await server.database.selectFrom('events').selectAll().orderBy('sequence').execute();
  rows.forEach((row, index) => {
    assert.equal(Number(row.sequence), index + 1);
    assert.equal(row.previous_hash, rows[index - 1]?.hash ?? '');
  });
});

test('a server that ends has written down what was asked for a moment before', async (t) => {
  const server = await startChannelServer(t);
  const { channel } = await openChannel(t, await server.addSandbox());
  const { database } = server;
  const kept = database.destroy.bind(database);
  const atTheEnd = Promise.withResolvers<readonly AuditEvent[]>();
  database.destroy = async () => {
    atTheEnd.resolve(await eventsOf(server));
    await kept();
  };
  await channel.run({ cmd: 'true' });
  await server.close();
  assert.deepEqual(
    (await atTheEnd.promise).map(({ payload }) => payload.command),
    ['true'],
  );
});

test('a process that cannot be noted ends with its channel', async (t) => {
  const server = await startChannelServer(t);
  const { channel, socket } = await openChannel(t, await server.addSandbox());
  await server.database.schema.dropTable('events').execute();
  const closed = closeOf(socket);
  await assert.rejects(channel.run({ cmd: 'sleep', args: ['60'] }));
  assert.equal((await closed).code, 1011);
});
