import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ChannelError } from './channel-error.ts';
import { ScriptedAgent } from '../testing/scripted-agent.ts';

test('datagrams go both ways, each as it was sent, until the socket is closed', async () => {
  const { agent, client } = await ScriptedAgent.connect((message, far) => {
    if (message.type === 'svc.udp.open') far.send(message.id, 'svc.udp.opened');
    if (message.type === 'svc.udp.data') far.send(message.id, 'svc.udp.data', message.payload);
  });
  const heard: number[] = [];
  const largest = Promise.withResolvers<void>();
  const socket = await client.openUdp(53, (datagram) => {
    heard.push(datagram.length);
    if (datagram.length === 65_507) largest.resolve();
  });
  for (const length of [0, 1, 65_507]) await socket.send(new Uint8Array(length));
  await largest.promise;
  assert.deepEqual(heard, [0, 1, 65_507]);
  socket.close();
  socket.close();
  await socket.closed;
  await assert.rejects(socket.send(Uint8Array.of(1)), /closed/);
  assert.deepEqual(
    agent.received.map(({ type }) => type),
    ['svc.udp.open', 'svc.udp.data', 'svc.udp.data', 'svc.udp.data', 'svc.udp.close'],
  );
});

test('a socket that cannot be opened says why, also of an agent that knows none', async () => {
  for (const [type, payload] of [
    ['svc.udp.failed', { error: 'too many' }],
    ['core.error', { kind: 'unsupported_message_type', message: 'too many' }],
  ] as const) {
    const { client } = await ScriptedAgent.connect((message, far) => far.send(message.id, type, payload));
    await assert.rejects(
      client.openUdp(53, () => undefined),
      (error) => error instanceof ChannelError && /too many/.test(error.message),
    );
  }
});

test('the end of the connection is the end of its sockets', async () => {
  const { client } = await ScriptedAgent.connect((message, far) => {
    if (message.type === 'svc.udp.open') far.send(message.id, 'svc.udp.opened');
  });
  const socket = await client.openUdp(53, () => undefined);
  client.close();
  await socket.closed;
});
