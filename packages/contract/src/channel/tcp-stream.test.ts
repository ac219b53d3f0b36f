import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ChannelError } from './channel-error.ts';
import { ScriptedAgent } from '../testing/scripted-agent.ts';

/** Connects to anything and sends back what it gets. */
function echoing(): ReturnType<typeof ScriptedAgent.connect> {
  return ScriptedAgent.connect((message, agent) => {
    if (message.type === 'core.tcp.connect') agent.send(message.id, 'core.tcp.connected');
    if (message.type === 'core.tcp.data') agent.send(message.id, 'core.tcp.data', message.payload);
    if (message.type === 'core.tcp.eof') {
      agent.send(message.id, 'core.tcp.eof');
      agent.send(message.id, 'core.tcp.closed');
    }
  });
}

test('a TCP stream carries bytes both ways, in frames of at most 64 KiB, and closes cleanly', async () => {
  const { agent, client } = await echoing();
  const stream = await client.connectTcp('localhost', 8080);
  assert.deepEqual(agent.received[0]?.payload, { host: 'localhost', port: 8080 });
  const content = new Uint8Array(150_000).map((_, index) => index % 251);
  await stream.write(content);
  await stream.end();
  const chunks = await Array.fromAsync(stream.readable);
  assert.deepEqual(Buffer.concat(chunks), Buffer.from(content));
  assert.ok(chunks.every((chunk) => chunk.length <= 65_536));
  await stream.closed;
  await assert.rejects(stream.write(content), /closed/);
});

test('a connection that cannot be made says why', async () => {
  const { client } = await ScriptedAgent.connect((message, agent) =>
    agent.send(message.id, 'core.tcp.failed', { error: 'Connection refused' }),
  );
  await assert.rejects(
    client.connectTcp('localhost', 1),
    (error) =>
      error instanceof ChannelError && error.kind === 'refused' && /Connection refused/.test(error.message),
  );
});

test('a connection that breaks rejects what waits on it', async () => {
  const { agent, client } = await echoing();
  const stream = await client.connectTcp('localhost', 1);
  agent.send(1, 'core.tcp.failed', { error: 'Connection reset by peer' });
  await assert.rejects(stream.closed, /reset/);
  await assert.rejects(Array.fromAsync(stream.readable), /reset/);
});

test('a deadline for the connection is none for what is sent over it', async () => {
  const { agent, client } = await echoing();
  const deadline = new AbortController();
  const stream = await client.connectTcp('localhost', 1, { signal: deadline.signal });
  deadline.abort(new Error('too late'));
  await stream.write(Uint8Array.of(7));
  await stream.end();
  assert.deepEqual(Buffer.concat(await Array.fromAsync(stream.readable)), Buffer.of(7));
  const late = new AbortController();
  const silent = await ScriptedAgent.connect(() => undefined);
  const connecting = silent.client.connectTcp('localhost', 1, { signal: late.signal });
  late.abort(new Error('too late'));
  await assert.rejects(connecting, /too late/);
  assert.deepEqual(
    agent.received.map((message) => message.type),
    ['core.tcp.connect', 'core.tcp.data', 'core.tcp.eof'],
  );
});

test('close drops the connection at once, once', async () => {
  const { agent, client } = await echoing();
  const stream = await client.connectTcp('localhost', 1);
  stream.close();
  stream.close();
  await stream.closed;
  assert.deepEqual(
    agent.received.map((message) => message.type),
    ['core.tcp.connect', 'core.tcp.close'],
  );
});
