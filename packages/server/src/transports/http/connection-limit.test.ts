import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { connect, type AddressInfo, type Socket } from 'node:net';
import { test, type TestContext } from 'node:test';
import { waitUntil } from '@svc/contract/testing';
import { ConnectionLimit } from './connection-limit.ts';

const MAX = 8;
const ATTACKER = '127.0.0.2';
const OTHER = '127.0.0.3';
const HEAD = 'GET / HTTP/1.1\r\nHost: x\r\n';

interface Fixture {
  readonly server: Server;
  readonly shares: ConnectionLimit;
  /** Answers that were not given yet. */
  readonly waiting: ServerResponse[];
  readonly open: (from: string, text?: string) => Promise<Socket>;
}

async function serve(t: TestContext): Promise<Fixture> {
  const waiting: ServerResponse[] = [];
  const server = createServer((request: IncomingMessage, response: ServerResponse) => {
    if (request.url !== '/unread') request.resume();
    if (request.url === '/slow') waiting.push(response);
    else response.end('answered');
  });
  const shares = new ConnectionLimit(server, MAX);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const sockets: Socket[] = [];
  t.after(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  const open = async (localAddress: string, text = '') => {
    const socket = connect({ port, host: '127.0.0.1', localAddress });
    sockets.push(socket);
    socket.on('error', () => undefined);
    await once(socket, 'connect');
    if (text !== '') socket.write(text);
    return socket;
  };
  return { server, shares, waiting, open };
}

async function ask(socket: Socket): Promise<string> {
  socket.write(`${HEAD}\r\n`);
  const [answer] = (await once(socket, 'data')) as [Buffer];
  return answer.toString();
}

const untilHeld = async (server: Server, count: number) =>
  await waitUntil(async () => {
    const [, held] = await new Promise<[unknown, number]>((resolve) =>
      server.getConnections((error, found) => resolve([error, found])),
    );
    return held === count;
  });

test('silent connections of one address keep no others out, nor do heads and bodies that never end', async (t) => {
  for (const text of ['', HEAD, `POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n1`]) {
    const { server, open } = await serve(t);
    for (let count = 0; count < MAX * 3; count++) await open(ATTACKER, text);
    await untilHeld(server, MAX);
    for (const from of [OTHER, ATTACKER]) assert.match(await ask(await open(from)), /answered/, text);
  }
});

test('the oldest silent connection of the address with the most makes room; what is served stays', async (t) => {
  const { server, waiting, open } = await serve(t);
  const served = await open(ATTACKER, 'GET /slow HTTP/1.1\r\nHost: x\r\n\r\n');
  await waitUntil(() => waiting.length === 1);
  const quiet = await open(OTHER);
  const silent = [];
  for (let count = 0; count < MAX - 2; count++) silent.push(await open(ATTACKER));
  await untilHeld(server, MAX);
  const closed = once(silent[0] ?? assert.fail(), 'close');
  assert.match(await ask(await open(OTHER)), /answered/);
  await closed;
  assert.deepEqual(
    silent.slice(1).map(({ destroyed }) => destroyed),
    silent.slice(1).map(() => false),
  );
  assert.match(await ask(quiet), /answered/);
  waiting[0]?.end('answered late');
  const [answer] = (await once(served, 'data')) as [Buffer];
  assert.match(answer.toString(), /answered late/);
});

test('when all connections are being served a new one is refused, and admitted when one is free', async (t) => {
  const { waiting, open } = await serve(t);
  for (let count = 0; count < MAX; count++) await open(OTHER, 'GET /slow HTTP/1.1\r\nHost: x\r\n\r\n');
  await waitUntil(() => waiting.length === MAX);
  const refused = await open(ATTACKER);
  await once(refused, 'close');
  waiting[0]?.end();
  await waitUntil(() => waiting[0]?.writableFinished === true);
  let answer = '';
  await waitUntil(async () => {
    const socket = await open(ATTACKER);
    answer = await Promise.race([ask(socket), once(socket, 'close').then(() => '')]).catch(() => '');
    return answer !== '';
  });
  assert.match(answer, /answered/);
});

test('a connection whose request was answered unread waits for its next one, and makes room', async (t) => {
  const { server, open } = await serve(t);
  for (let count = 0; count < MAX; count++) {
    const socket = await open(ATTACKER, 'GET /unread HTTP/1.1\r\nHost: x\r\n\r\n');
    await once(socket, 'data');
  }
  await untilHeld(server, MAX);
  const socket = await open(OTHER);
  const refused = once(socket, 'close').then(() => 'refused');
  assert.match(await Promise.race([ask(socket), refused]), /answered/);
});

test('at the end what said nothing is closed, and what is being served is answered', async (t) => {
  const { server, shares, waiting, open } = await serve(t);
  const served = await open(OTHER, 'GET /slow HTTP/1.1\r\nHost: x\r\n\r\n');
  const silent = await open(OTHER);
  await untilHeld(server, 2);
  await waitUntil(() => waiting.length === 1);
  const closed = once(silent, 'close');
  shares.dropSilent();
  await closed;
  waiting[0]?.end('answered late');
  const [answer] = (await once(served, 'data')) as [Buffer];
  assert.match(answer.toString(), /answered late/);
});
