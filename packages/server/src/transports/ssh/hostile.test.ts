import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import { Readable, Transform } from 'node:stream';
import { test, type TestContext } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { waitUntil } from '@svc/contract/testing';
import ssh2, { type Algorithms } from 'ssh2';
import { RandomGenerator } from '../../testing/random-generator.ts';
import { openExec, run, startTestGateway, type TestGateway } from '../../testing/ssh-gateway.ts';
import { DEFAULT_SSH_SETTINGS, type SshSettings } from './ssh-settings.ts';

const MIB = 1024 * 1024;
const FLOODERS = 8;
/** More than the kernel holds for a connection on this host. */
const MAX_FLOOD = 16 * MIB;
const VERSION = 'SSH-2.0-x\r\n';
const KEXINIT = 20;
const IGNORE = 2;
/** What the kernel holds for connections on this host, and what the collector has not come round to. */
const MAX_GROWTH = 150 * MIB;

interface Fixture {
  readonly gateway: TestGateway;
  readonly privateKey: string;
  /** A member who was there before runs a command, and another one comes in. */
  readonly checkServed: () => Promise<void>;
}

async function open(t: TestContext, settings: Partial<SshSettings> = {}): Promise<Fixture> {
  const gateway = await startTestGateway(t, settings);
  const { privateKey } = await gateway.addMember('ada@acme.example');
  await gateway.addSandbox('calm-fox');
  const login = { username: 'calm-fox', privateKey };
  const before = await gateway.connect(login);
  const checkServed = async () => {
    assert.equal((await run(before, 'true')).code, 0, 'who was there is served');
    const later = await gateway.connect(login);
    assert.equal((await run(later, 'true')).code, 0, 'a new client is served');
    later.end();
  };
  return { gateway, privateKey, checkServed };
}

/** A outsider, and when the gateway has closed its connection. */
function connectRaw(t: TestContext, port: number, localAddress = '127.0.0.1') {
  const socket = connect({ port, host: '127.0.0.1', localAddress });
  t.after(() => socket.destroy());
  socket.on('error', () => undefined);
  socket.resume();
  const closed = new Promise<void>((resolve) => void socket.once('close', () => resolve()));
  return { socket, closed };
}

const BLOCK_BYTES = 8;
const LEAST_PADDING = 4;

/** A well-formed packet from before keys are agreed on, but for what it says of its length and its padding. */
function packet(type: number, payload: Uint8Array, said: { length?: number; padding?: number } = {}): Buffer {
  const short = BLOCK_BYTES - ((6 + payload.length) % BLOCK_BYTES);
  const padding = short < LEAST_PADDING ? short + BLOCK_BYTES : short;
  const body = Buffer.concat([Buffer.of(said.padding ?? padding, type), payload, Buffer.alloc(padding)]);
  const head = Buffer.alloc(4);
  head.writeUInt32BE(said.length ?? body.length);
  return Buffer.concat([head, body]);
}

test('malformed packets before the login end their connection and no other', async (t) => {
  const { gateway, checkServed } = await open(t);
  const list = (length: number) =>
    Buffer.concat([Buffer.alloc(16), Buffer.from([0, 0, 0, length]), randomBytes(8)]);
  const streams: readonly (readonly Uint8Array[])[] = [
    [Buffer.alloc(20_000, 'S')],
    [Buffer.from('SSH-1.5-old\r\n')],
    [Buffer.from('hello\r\n'.repeat(5000))],
    [Buffer.from(`SSH-2.0-${'x'.repeat(300_000)}\r\n`)],
    [Buffer.from('SSH-2.0-x\rno newline\n')],
    [VERSION, packet(KEXINIT, list(4), { length: 0xfffffffc })],
    [VERSION, packet(KEXINIT, list(4), { length: 40_004 })],
    [VERSION, packet(KEXINIT, list(4), { length: 0 })],
    [VERSION, packet(KEXINIT, list(255))],
    [VERSION, packet(KEXINIT, Buffer.alloc(0))],
    [VERSION, packet(KEXINIT, list(4), { padding: 255 })],
    [VERSION, packet(50, Buffer.from('a login before keys'))],
    [VERSION, packet(90, Buffer.from('a channel before keys'))],
  ].map((parts) => parts.map((part) => Buffer.from(part)));
  for (const [index, parts] of streams.entries()) {
    const { socket, closed } = connectRaw(t, gateway.port);
    for (const part of parts) socket.write(part);
    // A fault that is not noticed leaves the connection open for a minute, until a login is overdue.
    const overdue = AbortSignal.timeout(DEFAULT_SSH_SETTINGS.loginMs / 2);
    await Promise.race([
      closed,
      once(overdue, 'abort').then(() => assert.fail(`stream ${index} was not ended`)),
    ]);
  }
  await checkServed();
});

test('floods before a login gather nothing: endless lines, and packets that are to be ignored', async (t) => {
  const { gateway, checkServed } = await open(t);
  globalThis.gc?.();
  const before = process.memoryUsage().rss;
  let most = before;
  const ignored = packet(IGNORE, Buffer.concat([Buffer.from([0, 0, 0x70, 0]), Buffer.alloc(0x7000)]));
  const floods = [Buffer.alloc(64 * 1024, 'x'), Buffer.concat(Array.from({ length: 8 }, () => ignored))];
  for (const [index, chunk] of floods.entries()) {
    let all = 0;
    const flooding = Array.from({ length: FLOODERS }, async () => {
      const { socket, closed } = connectRaw(t, gateway.port);
      if (index > 0) socket.write(VERSION);
      for (let sent = 0; sent < MAX_FLOOD && !socket.destroyed; sent += chunk.length) {
        if (!socket.write(chunk)) await Promise.race([once(socket, 'drain').catch(() => undefined), closed]);
        most = Math.max(most, process.memoryUsage().rss);
        all += chunk.length;
      }
      await closed;
    });
    await Promise.all(flooding);
    assert.ok(all < FLOODERS * MAX_FLOOD, `flood ${index} was read to its end`);
  }
  assert.ok(most - before < MAX_GROWTH, `memory grew by ${(most - before) / MIB} MiB`);
  await checkServed();
});

test('algorithms that cost the server much more than the client are not agreed on', async (t) => {
  const { gateway, privateKey, checkServed } = await open(t);
  const login = { username: 'calm-fox', privateKey };
  const dear: readonly Algorithms[] = [
    { kex: ['diffie-hellman-group14-sha256'] },
    { kex: ['diffie-hellman-group18-sha512'] },
    { kex: ['diffie-hellman-group-exchange-sha256'] },
    { kex: ['ecdh-sha2-nistp521'] },
    { compress: ['zlib'] },
    { compress: ['zlib@openssh.com'] },
  ];
  for (const algorithms of dear)
    await assert.rejects(gateway.connect({ ...login, algorithms }), JSON.stringify(algorithms));
  // As `ssh -C` asks.
  const compressing = await gateway.connect({
    ...login,
    algorithms: { compress: ['zlib@openssh.com', 'zlib', 'none'] },
  });
  assert.equal((await run(compressing, 'true')).code, 0);
  await checkServed();
});

test('keys are exchanged once before a login', async (t) => {
  const { gateway, checkServed } = await open(t);
  const client = new ssh2.Client();
  t.after(() => client.destroy());
  client.on('error', () => undefined);
  const closed = new Promise<void>((resolve) => void client.once('close', () => resolve()));
  // It is asked how to log in, and asks for other keys instead.
  // In ssh2, and not in its types.
  client.once('handshake', () => (client as unknown as { _protocol: { rekey(): void } })._protocol.rekey());
  client.connect({
    host: '127.0.0.1',
    port: gateway.port,
    username: 'calm-fox',
    authHandler: () => undefined,
  });
  const overdue = AbortSignal.timeout(DEFAULT_SSH_SETTINGS.loginMs / 2);
  await Promise.race([closed, once(overdue, 'abort').then(() => assert.fail('it may go on'))]);
  await checkServed();
});

test('a wrong bit in what is sent under keys ends that connection alone', async (t) => {
  const { gateway, privateKey, checkServed } = await open(t);
  const random = new RandomGenerator(1);
  for (let round = 0; round < 8; round++) {
    // The key exchange is about 2 KiB from the client; what comes later has a MAC.
    const at = random.below(4000);
    const port = await startTampering(t, gateway.port, at);
    const outcome = await gateway
      .connect({ host: '127.0.0.1', port, username: 'calm-fox', privateKey, readyTimeout: 30_000 })
      .then(async (client) => await run(client, 'true'))
      .then(({ code }) => code)
      .catch((error: unknown) => String(error));
    assert.doesNotMatch(String(outcome), /Timed out/i, `byte ${at}`);
  }
  await checkServed();
});

test('a session that is asked to begin twice begins once, and other clients are served', async (t) => {
  const { gateway, privateKey, checkServed } = await open(t);
  const client = await gateway.connect({ username: 'calm-fox', privateKey });
  // Usual clients do not send such requests, and the types omit the methods that do.
  const { _protocol: protocol } = client as unknown as { readonly _protocol: Requests };
  const channel = await openExec(client, 'sleep 1000');
  const { id } = (channel as unknown as { readonly outgoing: { readonly id: number } }).outgoing;
  protocol.exec(id, 'true', true);
  protocol.shell(id, false);
  protocol.subsystem(id, 'sftp', true);
  protocol.subsystem(id, 'other', false);
  await checkServed();
  assert.equal((await run(client, 'true')).code, 0, 'its other sessions go on');
});

interface Requests {
  exec(channel: number, command: string, wantsAnswer: boolean): void;
  shell(channel: number, wantsAnswer: boolean): void;
  subsystem(channel: number, name: string, wantsAnswer: boolean): void;
}

test('a client that takes no packets gets no channel, and other clients are served', async (t) => {
  const { gateway, privateKey, checkServed } = await open(t);
  const client = await gateway.connect({ username: 'calm-fox', privateKey });
  const { _protocol: protocol } = client as unknown as { readonly _protocol: Opening };
  const session = protocol.session.bind(protocol);
  const tcpip = protocol.directTcpip.bind(protocol);
  const forward = () =>
    new Promise((resolve, reject) => {
      client.forwardOut('127.0.0.1', 1, '127.0.0.1', 1, (error, channel) =>
        error === undefined ? resolve(channel) : reject(error),
      );
    });
  for (const size of [0, 1, 511]) {
    protocol.session = (channel, window) => session(channel, window, size);
    protocol.directTcpip = (channel, window, _size, target) => tcpip(channel, window, size, target);
    // Refused when it is opened: what a size of 0 does to a channel that stands would stop this test with the gateway.
    await assert.rejects(
      run(client, 'echo output'),
      /packets of at least 512 bytes/,
      `a session with ${size}`,
    );
    await assert.rejects(forward(), /packets of at least 512 bytes/, `a forwarded connection with ${size}`);
  }
  protocol.session = (channel, window) => session(channel, window, 512);
  assert.equal((await run(client, 'echo output')).code, 0, 'small packets are packets');
  await checkServed();
});

interface Opening {
  session(channel: number, window: number, packetSize: number): void;
  directTcpip(channel: number, window: number, packetSize: number, target: unknown): void;
}

test('a client whose first line arrives byte by byte is served', async (t) => {
  const { gateway, privateKey } = await open(t);
  const port = await startDripping(t, gateway.port);
  const client = await gateway.connect({ host: '127.0.0.1', port, username: 'calm-fox', privateKey });
  assert.equal((await run(client, 'true')).code, 0);
  client.end();
});

/** A way to the gateway on which the first bytes of a client arrive one by one. */
async function startDripping(t: TestContext, port: number): Promise<number> {
  const server = createServer((client: Socket) => {
    const target = connect({ port, host: '127.0.0.1', noDelay: true });
    client.on('error', () => target.destroy()).once('close', () => target.destroy());
    target.on('error', () => client.destroy()).once('close', () => client.destroy());
    target.pipe(client);
    Readable.from(dripped(client))
      .on('error', () => target.destroy())
      .pipe(target);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => server.close());
  return (server.address() as AddressInfo).port;
}

async function* dripped(source: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let left = 40;
  for await (const chunk of source) {
    const count = Math.min(left, chunk.length);
    left -= count;
    for (const byte of chunk.subarray(0, count)) {
      yield Buffer.of(byte);
      // Long enough for the kernel to deliver each for itself; should it not, there are still pieces enough.
      await setTimeout(5);
    }
    yield chunk.subarray(count);
  }
}

/** A way to the gateway on which one bit of what the client sends is turned. */
async function startTampering(t: TestContext, port: number, at: number): Promise<number> {
  const server = createServer((client: Socket) => {
    const target = connect(port, '127.0.0.1');
    let passed = 0;
    const tamper = new Transform({
      transform: (chunk: Buffer, _encoding, done) => {
        const place = at - passed;
        if (place >= 0 && place < chunk.length) chunk.writeUInt8(chunk.readUInt8(place) ^ 1, place);
        passed += chunk.length;
        done(null, chunk);
      },
    });
    for (const [one, other] of [
      [client, target],
      [target, client],
    ] as const) {
      one.on('error', () => other.destroy());
      one.once('close', () => other.destroy());
    }
    client.pipe(tamper).pipe(target).pipe(client);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => server.close());
  return (server.address() as AddressInfo).port;
}

test('a handshake sent byte by byte times out, and takes no slot of other addresses', async (t) => {
  const connections = { total: 100, unauthenticated: 8, unauthenticatedPerAddress: 4, newPerAddress: 100 };
  const { gateway, checkServed } = await open(t, { connections, loginMs: 10_000 });
  const slow = Array.from({ length: 12 }, () => connectRaw(t, gateway.port, '127.0.0.2'));
  const bytes = packet(KEXINIT, Buffer.alloc(30_000));
  const timers = slow.map(({ socket }, index) => {
    let sent = 0;
    socket.write(VERSION);
    return setInterval(() => socket.write(bytes.subarray(sent, ++sent)), 20 + index);
  });
  t.after(() => timers.forEach((timer) => clearInterval(timer)));
  const held = () => slow.filter(({ socket }) => !socket.destroyed);
  await waitUntil(
    () => held().length === connections.unauthenticatedPerAddress,
    'the share of their address',
  );
  await waitUntil(() => held().every(({ socket }) => socket.bytesRead > 0), 'the greeting of the gateway');
  await checkServed();
  await waitUntil(() => slow.every(({ socket }) => socket.destroyed), 'slow handshakes are ended');
});
