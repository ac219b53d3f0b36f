import assert from 'node:assert/strict';
import type { Socket } from 'node:dgram';
import { after, before, test, type TestContext } from 'node:test';
import { waitUntil } from '@svc/contract/testing';
import { PlatformError, type ChannelClient } from '@svc/contract';
import { pino } from 'pino';
import { TestSandbox } from '../testing/code-sandbox.ts';
import { PortForwarder } from './port-forwarder.ts';
import { freePort } from '../testing/free-port.ts';
import { openUdp } from '../testing/udp.ts';
import { requireFreePorts } from './publish-ports.ts';
import { DEFAULT_UDP_LIMITS, UdpClients, type UdpLimits } from './udp-clients.ts';

const logger = pino({ level: 'silent' });
const GUEST_PORT = 5300;
/** An echo server that also answers with the port of the sender. */
const ECHO = `
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("127.0.0.1", ${GUEST_PORT}))
print("ready", flush=True)
while True:
    data, sender = s.recvfrom(65535)
    s.sendto(str(sender[1]).encode() if data == b"who" else data, sender)
`;

let sandbox: TestSandbox;
let service: ChannelClient;
before(async () => {
  sandbox = await TestSandbox.start();
  service = await sandbox.openChannel(AbortSignal.timeout(60_000));
  const process = await service.exec({ cmd: 'python3', args: ['-c', ECHO] });
  for await (const line of process.stdout) if (Buffer.from(line).includes('ready')) break;
});
after(async () => {
  service.close();
  await sandbox.stop();
});

/** A published port that leads to the service. */
async function publish(t: TestContext): Promise<{ port: number; forwarder: PortForwarder }> {
  const forwarder = new PortForwarder((_id, signal) => sandbox.openChannel(signal), logger);
  t.after(() => forwarder.closeAll());
  const port = await freePort('udp');
  await forwarder.open('box', [{ host: port, guest: GUEST_PORT, protocol: 'udp' }], () => true);
  return { port, forwarder };
}

/** Sends until the expected answer comes, by default the same datagram: any datagram may be lost or late. */
async function ask(
  socket: Socket,
  port: number,
  datagram: string | Uint8Array,
  isAnswer = (answer: Buffer) => answer.equals(Buffer.from(datagram)),
): Promise<Buffer> {
  let answer: Buffer | undefined;
  const take = (received: Buffer) => {
    if (isAnswer(received)) answer = received;
  };
  socket.on('message', take);
  let sentAt = Number.NEGATIVE_INFINITY;
  await waitUntil(() => {
    if (answer === undefined && performance.now() - sentAt > 1000) {
      socket.send(datagram, port, '127.0.0.1');
      sentAt = performance.now();
    }
    return answer !== undefined;
  }, 'an answer');
  socket.off('message', take);
  // The wait above saw it.
  return answer as unknown as Buffer;
}

async function askWho(socket: Socket, port: number): Promise<string> {
  return String(await ask(socket, port, 'who', (answer) => /^\d+$/.test(String(answer))));
}

test('each client has a sender of its own in the sandbox and gets its own answers', async (t) => {
  const { port } = await publish(t);
  const sockets = await Promise.all(Array.from({ length: 40 }, () => openUdp(t)));
  const who = await Promise.all(sockets.map((socket) => askWho(socket, port)));
  assert.equal(new Set(who).size, sockets.length);
  const again = await Promise.all(sockets.map((socket) => askWho(socket, port)));
  assert.deepEqual(again, who);
  await Promise.all(
    sockets.map(async (socket, index) => {
      assert.equal(String(await ask(socket, port, `mine ${index}`)), `mine ${index}`);
    }),
  );
});

test('datagrams of every size arrive whole, the empty one and the largest too', async (t) => {
  const { port } = await publish(t);
  const socket = await openUdp(t);
  for (const length of [0, 1, 1500, 9000, 65_507]) {
    const sent = Buffer.alloc(length, 'abcdefg');
    assert.ok((await ask(socket, port, sent)).equals(sent), String(length));
  }
});

test('a port that is taken is refused, and is free when the forwarder has closed it', async (t) => {
  const { port, forwarder } = await publish(t);
  const mapping = { host: port, guest: 1, protocol: 'udp' } as const;
  await assert.rejects(
    requireFreePorts([mapping]),
    (error) => PlatformError.is(error, 'invalid_sandbox_config') && /is in use/.test(error.message),
  );
  await assert.rejects(
    forwarder.open('other', [mapping], () => true),
    (error) => PlatformError.is(error, 'start_failed'),
  );
  await forwarder.close('box');
  await forwarder.close('box');
  await requireFreePorts([mapping]);
});

test('after the engine was away datagrams arrive again', async (t) => {
  const own = await TestSandbox.start();
  t.after(() => own.stop());
  const forwarder = new PortForwarder((_id, signal) => own.openChannel(signal), logger);
  t.after(() => forwarder.closeAll());
  const port = await freePort('udp');
  await forwarder.open('box', [{ host: port, guest: GUEST_PORT, protocol: 'udp' }], () => true);
  const socket = await openUdp(t);
  const serve = async () => {
    const channel = await own.openChannel(AbortSignal.timeout(60_000));
    const process = await channel.exec({ cmd: 'python3', args: ['-c', ECHO] });
    for await (const line of process.stdout) if (Buffer.from(line).includes('ready')) break;
  };
  await serve();
  assert.equal(String(await ask(socket, port, 'one')), 'one');
  await own.loseEngine();
  socket.send('lost', port, '127.0.0.1');
  await own.restoreEngine();
  assert.equal(String(await ask(socket, port, 'two')), 'two');
});

test('without a listener datagrams are lost, and later ones arrive', async (t) => {
  const forwarder = new PortForwarder((_id, signal) => sandbox.openChannel(signal), logger);
  t.after(() => forwarder.closeAll());
  const port = await freePort('udp');
  const guest = GUEST_PORT + 1;
  await forwarder.open('box', [{ host: port, guest, protocol: 'udp' }], () => true);
  const socket = await openUdp(t);
  for (let count = 0; count < 3; count++) socket.send('early', port, '127.0.0.1');
  const channel = await sandbox.openChannel(AbortSignal.timeout(60_000));
  t.after(() => channel.close());
  const late = await channel.exec({
    cmd: 'python3',
    args: ['-c', ECHO.replace(`${GUEST_PORT}`, `${guest}`)],
  });
  for await (const line of late.stdout) if (Buffer.from(line).includes('ready')) break;
  assert.equal(String(await ask(socket, port, 'late')), 'late');
});

test('new clients do not displace active ones; the longest idle one is dropped', async (t) => {
  const answers: string[] = [];
  const clients = make(t, { maxClients: 2, yieldMs: 60_000 }, answers);
  clients.take(from(1), Buffer.from('a'));
  clients.take(from(2), Buffer.from('b'));
  clients.take(from(3), Buffer.from('c'));
  await waitUntil(() => answers.length === 2, 'two answers');
  assert.deepEqual(answers.toSorted(), ['1 a', '2 b']);
  const yielding: string[] = [];
  const soft = make(t, { maxClients: 2, yieldMs: 0 }, yielding);
  for (const [port, text] of [
    [1, 'a'],
    [2, 'b'],
    [1, 'c'],
    [3, 'd'],
  ] as const) {
    soft.take(from(port), Buffer.from(text));
    await waitUntil(() => yielding.at(-1) === `${port} ${text}`, text);
  }
  assert.equal(soft.size, 2);
});

test('a client without datagrams for a while is forgotten', async (t) => {
  const answers: string[] = [];
  const clients = make(t, { idleMs: 50 }, answers);
  clients.take(from(1), Buffer.from('a'));
  await waitUntil(() => clients.size === 0, 'it is forgotten');
  await waitUntil(() => {
    // It may be forgotten again before the answer to one datagram is here.
    clients.take(from(1), Buffer.from('again'));
    return answers.includes('1 again');
  }, 'an answer');
});

test('datagrams that the sandbox does not read are bounded', async (t) => {
  const opened = Promise.withResolvers<ChannelClient>();
  const target = {
    sandboxId: 'box',
    guestPort: GUEST_PORT,
    openChannel: () => opened.promise,
    logger,
    mayEnter: () => true,
  };
  const answers: string[] = [];
  const limits = { ...DEFAULT_UDP_LIMITS, maxQueued: 3 };
  const clients = new UdpClients(target, (datagram) => answers.push(String(Buffer.from(datagram))), limits);
  t.after(() => clients.close());
  for (let count = 0; count < 10; count++) clients.take(from(1), Buffer.from(`d${count}`));
  opened.resolve(await sandbox.openChannel(AbortSignal.timeout(60_000)));
  await waitUntil(() => answers.length === 3, 'three answers');
  clients.take(from(1), Buffer.from('last'));
  await waitUntil(() => answers.length === 4, 'one more');
  assert.deepEqual(answers, ['d0', 'd1', 'd2', 'last']);
});

function from(port: number) {
  return { address: '192.0.2.1', port };
}

function make(t: TestContext, limits: Partial<UdpLimits>, answers: string[]): UdpClients {
  const openChannel = () => sandbox.openChannel(AbortSignal.timeout(60_000));
  const target = { sandboxId: 'box', guestPort: GUEST_PORT, openChannel, logger, mayEnter: () => true };
  const reply = (datagram: Uint8Array, client: { readonly port: number }) =>
    answers.push(`${client.port} ${String(Buffer.from(datagram))}`);
  const clients = new UdpClients(target, reply, { ...DEFAULT_UDP_LIMITS, ...limits });
  t.after(() => clients.close());
  return clients;
}
