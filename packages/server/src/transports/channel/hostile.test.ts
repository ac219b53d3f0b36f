import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { connect } from 'node:net';
import { Duplex } from 'node:stream';
import { test } from 'node:test';
import { waitUntil } from '@svc/contract/testing';
import { encodeMessage } from '@svc/contract/frames';
import { createFakeAgent } from '../../testing/fake-agent.ts';
import { startChannelServer } from '../../testing/channel-server.ts';
import { closeOf, openChannel, openWebSocket } from '../../testing/channel.ts';

const GREETING = Buffer.concat([
  Buffer.from([0, 0, 0, 1, 0xff, 0xff, 0xff, 0xff]),
  encodeMessage(0, 'core.ready', { boot_time_ns: 1, init_time_ns: 2, ready_time_ns: 3 }),
]);

/** A sandbox's end that sends what `next` gives for as long as it is read, and counts it. */
function producer(next: () => Uint8Array | null): { readonly stream: Duplex; readonly sent: () => number } {
  let sent = 0;
  const stream = new Duplex({
    read() {
      const chunk = next();
      sent += chunk?.length ?? 0;
      this.push(chunk);
    },
    write: (_chunk, _encoding, done) => done(),
  });
  return { stream, sent: () => sent };
}

test('a sandbox that forges ids, announces endless frames and floods reaches no other sandbox', async (t) => {
  const server = await startChannelServer(t);
  const address = await server.addSandbox();
  const hostile: Duplex[] = [];
  const forged = [1, 2, 3, 0xfffffffe].flatMap((id) => [
    encodeMessage(id, 'core.exec.stdout', { data: Buffer.from('forged') }),
    encodeMessage(id, 'core.exec.exited', { code: 99 }),
  ]);
  const overlong = Buffer.from([0xff, 0xff, 0xff, 0xff, 0, 0, 0, 1, 0]);
  server.orchestrator.createAgent = () => {
    const chunks = [GREETING, ...forged, overlong];
    const { stream } = producer(() => chunks.shift() ?? randomBytes(65_536));
    hostile.push(stream);
    return stream;
  };
  const victims = await Promise.all([1, 2].map(() => openWebSocket(t, address)));
  server.orchestrator.createAgent = createFakeAgent;
  const { channel } = await openChannel(t, address);
  const other = await openChannel(t, await server.addSandbox({ organization: 'other' }));
  for (const honest of [channel, other.channel]) {
    const { code, stdout } = await honest.run({ cmd: 'sh', args: ['-c', 'echo mine; exit 3'] });
    assert.deepEqual([code, Buffer.from(stdout).toString()], [3, 'mine\n']);
  }
  for (const victim of victims) victim.terminate();
  await waitUntil(() => hostile.every((stream) => stream.destroyed));
});

test('a client that does not read stops the sandbox from writing', async (t) => {
  const server = await startChannelServer(t, { keepAliveMs: 500 });
  const { stream, sent } = producer(() => Buffer.alloc(65_536));
  server.orchestrator.createAgent = () => stream;
  const socket = await openWebSocket(t, await server.addSandbox());
  socket.pause();
  await isStill(sent);
  // What the kernel holds for a connection on this host, and one buffer of ours.
  assert.ok(sent() < 32 * 1024 * 1024, `${sent()} bytes were sent to a client that does not read`);
  assert.equal(socket.readyState, socket.OPEN);
});

test('a sandbox that takes nothing stops its client from sending', async (t) => {
  const server = await startChannelServer(t);
  const stuck = new Duplex({ read: () => undefined, write: () => undefined });
  server.orchestrator.createAgent = () => stuck;
  // Its answers to pings would count as sent.
  const socket = await openWebSocket(t, { ...(await server.addSandbox()), isSilent: true });
  const frame = encodeMessage(1, 'core.exec.stdin', { data: new Uint8Array(1024 * 1024) });
  for (let sent = 0; sent < 64; sent++) socket.send(frame);
  await isStill(() => socket.bufferedAmount);
  // The kernel's buffers take some MiB, and we take one and what was on its way.
  assert.ok(socket.bufferedAmount > 32 * 1024 * 1024, `only ${socket.bufferedAmount} bytes were held back`);
});

test('a client that leaves while its sandbox takes nothing is noticed', async (t) => {
  const server = await startChannelServer(t, { keepAliveMs: 500 });
  const stuck = new Duplex({ read: () => undefined, write: () => undefined });
  server.orchestrator.createAgent = () => stuck;
  const socket = await openWebSocket(t, await server.addSandbox());
  for (let i = 0; i < 8; i++) {
    socket.send(encodeMessage(1, 'core.exec.stdin', { data: new Uint8Array(1024 * 1024) }));
  }
  await waitUntil(() => stuck.writableLength > 0);
  socket.terminate();
  await waitUntil(() => stuck.destroyed, 'the stream to the sandbox ends');
});

test('a client that ends with FIN and no close frame has left', async (t) => {
  const server = await startChannelServer(t);
  const { channel, socket } = await openChannel(t, await server.addSandbox());
  const { pid } = await channel.exec({ cmd: 'sleep', args: ['60'] });
  // How the published client ends. The property is not in the types of ws.
  const { _socket: raw } = socket as unknown as { _socket: { end(): void } };
  raw.end();
  await waitUntil(() => !isAlive(pid), 'its process is killed');
});

test('other clients are served while one sends garbage', async (t) => {
  const server = await startChannelServer(t);
  const address = await server.addSandbox();
  const { channel } = await openChannel(t, address);
  for (let round = 0; round < 60; round++) {
    const socket = await openWebSocket(t, address);
    const closed = closeOf(socket);
    for (let i = 0; i < 5; i++) socket.send(mutated(round * 5 + i));
    if (round % 3 === 0) socket.terminate();
    else socket.close();
    await closed;
  }
  assert.equal((await channel.run({ cmd: 'true' })).code, 0);
});

test('bytes that are no frames end the channel with a protocol error, over-long messages with their own', async (t) => {
  const server = await startChannelServer(t);
  const address = await server.addSandbox();
  const codeFor = async (bytes: Uint8Array) => {
    const socket = await openWebSocket(t, address);
    const closed = closeOf(socket);
    socket.send(bytes);
    return (await closed).code;
  };
  assert.equal(await codeFor(Buffer.alloc(9, 0xff)), 1002);
  assert.equal(await codeFor(encodeMessage(0, 'core.shutdown')), 1002);
  assert.equal(await codeFor(Buffer.alloc(4 * 1024 * 1024 + 5)), 1009);
});

test('a gigabyte passes through without gathering in memory', async (t) => {
  const server = await startChannelServer(t);
  const total = 1024 * 1024 * 1024;
  const chunk = Buffer.alloc(65_536, 7);
  const { stream, sent } = producer(() => (sent() < total ? chunk : null));
  server.orchestrator.createAgent = () => stream;
  const address = await server.addSandbox();
  globalThis.gc?.();
  const before = process.memoryUsage().rss;
  let most = before;
  let received = 0;
  const socket = await openWebSocket(t, address);
  socket.on('message', (data: Buffer) => {
    received += data.length;
    if (received % (16 * 1024 * 1024) < data.length) most = Math.max(most, process.memoryUsage().rss);
  });
  await once(socket, 'close');
  assert.ok(received >= total - 65_536, `${received} bytes arrived`);
  assert.ok(most - before < 200 * 1024 * 1024, `memory grew by ${(most - before) / 1024 / 1024} MiB`);
});

/** Until a number has not changed for a second. */
async function isStill(read: () => number): Promise<void> {
  let last = -1;
  let since = performance.now();
  await waitUntil(() => {
    if (read() !== last) since = performance.now();
    last = read();
    return performance.now() - since > 1000;
  }, 'nothing moves any more');
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

/** A frame with one thing wrong, a different one for every seed; the same in every run. */
function mutated(seed: number): Uint8Array {
  const frame = Buffer.from(encodeMessage(seed + 1, 'core.exec.request', { cmd: 'true', args: ['a', 'b'] }));
  const place = (seed * 7919) % frame.length;
  frame.writeUInt8((frame.readUInt8(place) + 1 + (seed % 254)) % 256, place);
  return seed % 4 === 0 ? frame.subarray(0, place) : frame;
}

test('a handshake that is wrong is refused in words and takes no place', async (t) => {
  const server = await startChannelServer(t, { limits: { perSandbox: 1, perOrganization: 100 } });
  const { url, sandboxId, key } = await server.addSandbox();
  const port = Number(new URL(url).port);
  const good = ['Sec-WebSocket-Version: 13', 'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=='] as const;
  const ask = async (method: string, ...headers: readonly string[]): Promise<string> => {
    const socket = connect(port, '127.0.0.1');
    const fixed = [`Host: 127.0.0.1:${port}`, `Authorization: Bearer ${key}`, 'Connection: Upgrade'];
    const lines = [`${method} /v1/sandboxes/${sandboxId}/agent HTTP/1.1`, ...fixed, 'Upgrade: websocket'];
    socket.write(`${[...lines, ...headers].join('\r\n')}\r\n\r\n`);
    let text = '';
    for await (const chunk of socket) text += String(chunk);
    return text.split(' ')[1] ?? '';
  };
  for (let round = 0; round < 3; round += 1) {
    assert.equal(await ask('GET', 'Sec-WebSocket-Version: 99', good[1]), '400');
    assert.equal(await ask('GET', good[0]), '400');
    assert.equal(await ask('GET', ...good, 'Sec-WebSocket-Protocol: a,,b'), '400');
    assert.equal(await ask('HEAD', ...good), '405');
  }
  const { channel } = await openChannel(t, { url, sandboxId, key });
  assert.equal((await channel.run({ cmd: 'true' })).code, 0);
});
