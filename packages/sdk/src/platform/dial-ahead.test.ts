import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { test, type TestContext } from 'node:test';
import { waitUntil } from '@svc/contract/testing';
import { dialAhead, takeDialled, targetOf } from './dial-ahead.ts';
import { dialNode } from './node-dial.ts';

const MOST_WAITING = 4;

/** Answers every upgrade with a refusal that names the connection. */
class Peer {
  readonly url: string;
  readonly sockets: Socket[] = [];

  private constructor(server: Server) {
    this.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    server.on('connection', (socket) => {
      const number = this.sockets.push(socket);
      socket.on('error', () => undefined);
      socket.once('data', () => {
        const body = JSON.stringify({ error: { code: 'forbidden', message: `connection ${number}` } });
        socket.end(`HTTP/1.1 403 Forbidden\r\ncontent-length: ${body.length}\r\n\r\n${body}`);
      });
    });
  }

  static async listen(t: TestContext): Promise<Peer> {
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    const peer = new Peer(server);
    t.after(() => {
      for (const socket of peer.sockets) socket.destroy();
      server.close();
    });
    return peer;
  }

  /** The arguments of a dial. */
  async answer(): Promise<string> {
    const request = {
      url: this.url.replace('http', 'ws'),
      apiKey: undefined,
      signal: AbortSignal.timeout(60_000),
    };
    return await dialNode({ ...request, describeRefusal: () => Promise.resolve(null) }).then(
      () => 'open',
      (error: Error) => error.message,
    );
  }
}

test('the next dial takes the connection that was opened ahead, the one after it opens its own', async (t) => {
  const peer = await Peer.listen(t);
  dialAhead(peer.url);
  await waitUntil(() => peer.sockets.length === 1);
  assert.equal(await peer.answer(), 'connection 1');
  assert.equal(await peer.answer(), 'connection 2');
});

test('a connection in use stays until its owner closes it', async (t) => {
  const peer = await Peer.listen(t);
  t.mock.timers.enable({ apis: ['setTimeout'] });
  dialAhead(peer.url);
  const taken = takeDialled(targetOf(new URL(peer.url))) ?? assert.fail('there is one');
  t.mock.timers.tick(60_000);
  assert.equal(taken.socket.destroyed, false);
  taken.socket.destroy();
});

test('a connection that the server closed is not used, or replaced when it closes without an answer', async (t) => {
  const peer = await Peer.listen(t);
  dialAhead(peer.url);
  await waitUntil(() => peer.sockets.length === 1);
  peer.sockets[0]?.removeAllListeners('data').on('data', () => peer.sockets[0]?.destroy());
  assert.equal(await peer.answer(), 'connection 2');
  dialAhead(peer.url);
  await waitUntil(() => peer.sockets.length === 3);
  peer.sockets[2]?.end();
  await waitUntil(() => peer.sockets[2]?.destroyed === true);
  assert.equal(await peer.answer(), 'connection 4');
});

test('few wait at a time, and none for ever', async (t) => {
  const peer = await Peer.listen(t);
  for (let count = 0; count < 10; count++) dialAhead(peer.url);
  await waitUntil(() => peer.sockets.length === MOST_WAITING);
  for (const socket of peer.sockets) socket.resume();
  await waitUntil(() => peer.sockets.every(({ destroyed }) => destroyed));
  assert.equal(peer.sockets.length, MOST_WAITING);
  assert.equal(takeDialled(targetOf(new URL(peer.url))), undefined);
});

test('an unreachable server causes no unhandled rejection', async (t) => {
  const peer = await Peer.listen(t);
  dialAhead('http://127.0.0.1:1');
  await new Promise((resolve) => void setTimeout(resolve, 50));
  assert.equal(takeDialled(targetOf(new URL('http://127.0.0.1:1'))), undefined);
  assert.equal(await peer.answer(), 'connection 1');
});
