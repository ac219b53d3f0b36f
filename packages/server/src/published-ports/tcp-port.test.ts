import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { test, type TestContext } from 'node:test';
import type { ChannelClient } from '@svc/contract';
import { ScriptedAgent } from '@svc/contract/testing';
import { pino } from 'pino';
import { freePort } from '../testing/free-port.ts';
import { openTcpPort, type ConnectTimeouts } from './tcp-port.ts';

/** A sandbox whose service answers `hello`, after it was asked for in vain as often as the test says. */
class LateService {
  refusals = 0;
  asked = 0;
  openings = 0;

  async openChannel(): Promise<ChannelClient> {
    this.openings += 1;
    const { client } = await ScriptedAgent.connect((message, agent) => {
      if (message.type !== 'core.tcp.connect') return;
      this.asked += 1;
      if (this.asked <= this.refusals)
        return agent.send(message.id, 'core.tcp.failed', { error: 'Connection refused' });
      agent.send(message.id, 'core.tcp.connected');
      agent.send(message.id, 'core.tcp.data', { data: Buffer.from('hello') });
      agent.send(message.id, 'core.tcp.eof');
      return agent.send(message.id, 'core.tcp.closed');
    });
    return client;
  }
}

async function publish(
  t: TestContext,
  openChannel: () => Promise<ChannelClient>,
  timeouts: ConnectTimeouts,
): Promise<() => Promise<string>> {
  const port = await freePort();
  const target = {
    sandboxId: 'box',
    guestPort: 80,
    openChannel,
    logger: pino({ level: 'silent' }),
    mayEnter: () => true,
  };
  const opened = await openTcpPort({ address: '127.0.0.1', port }, target, timeouts);
  t.after(() => opened.close());
  return async () => {
    const socket = connect({ port, host: '127.0.0.1' });
    await once(socket, 'connect');
    return Buffer.concat(await Array.fromAsync(socket as AsyncIterable<Buffer>)).toString();
  };
}

test('the first connections wait longer than those to a service that was there already', async (t) => {
  const service = new LateService();
  service.refusals = 5;
  const visit = await publish(t, () => service.openChannel(), { firstMs: 60_000, againMs: 0 });
  assert.equal(await visit(), 'hello');
  assert.deepEqual([service.asked, service.openings], [6, 1], 'one channel for all attempts');
  service.asked = 0;
  // Reset: an end would be an empty answer of the service.
  await assert.rejects(visit(), { code: 'ECONNRESET' });
  assert.equal(service.asked, 1);
});

test('a channel that breaks while a connection waits is replaced', async (t) => {
  const service = new LateService();
  let failures = 2;
  const openChannel = async () => {
    const channel = await service.openChannel();
    if (failures > 0) channel.close();
    failures -= 1;
    return channel;
  };
  const visit = await publish(t, openChannel, { firstMs: 60_000, againMs: 60_000 });
  assert.equal(await visit(), 'hello');
  assert.equal(service.openings, 3);
});

test('a connection that cannot reach the sandbox is closed at once', async (t) => {
  const visit = await publish(t, () => Promise.reject(new Error('a bug')), {
    firstMs: 60_000,
    againMs: 60_000,
  });
  await assert.rejects(visit(), { code: 'ECONNRESET' });
});
