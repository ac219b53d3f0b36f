import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { waitUntil } from '@svc/contract/testing';
import { decodeMessage, encodeMessage, FrameSplitter } from '@svc/contract/frames';
import fc from 'fast-check';
import { GuestLink, type GuestListener } from './guest-link.ts';
import { TokenBuckets } from './token-buckets.ts';

interface Fixture {
  readonly link: GuestLink;
  readonly token: string;
  readonly seen: string[];
  /** All output together. */
  readonly heard: { bytes: number };
  readonly path: string;
  readonly dial: (kind: 'C' | 'S', connection: number, token?: string) => Promise<Socket>;
}

async function listen(t: TestContext, buckets?: TokenBuckets): Promise<Fixture> {
  const folder = mkdtempSync(join(tmpdir(), 'svc-link-'));
  const token = randomBytes(32).toString('hex');
  const seen: string[] = [];
  const heard = { bytes: 0 };
  const path = join(folder, 'engine.sock');
  const listener: GuestListener = {
    asked: () => seen.push('asked'),
    connected: () => seen.push('connected'),
    disconnected: () => seen.push('disconnected'),
    status: ({ activeProcesses }) => seen.push(`status ${activeProcesses}`),
    output: ({ key, data }) => seen.push(`output ${key}`) && void (heard.bytes += data.length),
    exited: ({ key }) => seen.push(`exited ${key}`),
    wasOutOfMemory: async () => true,
    wereForksRefused: () => false,
  };
  const link = await GuestLink.listen(folder, token, listener, buckets);
  const sockets: Socket[] = [];
  t.after(async () => {
    for (const socket of sockets) socket.destroy();
    await link.close();
    rmSync(folder, { recursive: true, force: true });
  });
  const dial = async (kind: 'C' | 'S', connection: number, given = token) => {
    const socket = connect(path);
    sockets.push(socket);
    socket.on('error', () => {});
    await once(socket, 'connect');
    const head = Buffer.alloc(9);
    head.write(`SVC1${kind}`);
    head.writeUInt32BE(connection, 5);
    socket.write(Buffer.concat([head, Buffer.from(given, 'hex')]));
    return socket;
  };
  return { link, token, seen, heard, path, dial };
}

/** Also of a connection that the other side resets because it has not read everything. */
async function closed(socket: Socket): Promise<void> {
  await new Promise<void>((resolve) => void socket.once('close', () => resolve()));
}

test('a connection with a wrong token is dropped unread', async (t) => {
  const { link, dial, seen } = await listen(t);
  const dialled = await dial('C', 0, randomBytes(32).toString('hex'));
  dialled.write(encodeMessage(0, 'svc.hello', { processes: [] }));
  await closed(dialled);
  assert.equal(link.isConnected, false);
  assert.deepEqual(seen, []);
});

test('a client gets a session connection whose first bytes are the handshake', async (t) => {
  const { link, dial, seen } = await listen(t);
  const control = await dial('C', 0);
  control.write(encodeMessage(0, 'svc.hello', { processes: [] }));
  await waitUntil(() => seen.includes('connected'));
  const dialled = await dial('S', 1);
  dialled.write('hello bytes');
  const session = await link.takeSession(AbortSignal.timeout(60_000));
  assert.equal(session.connection, 1);
  assert.equal(seen.at(-1), 'asked');
  const [first] = await once(session.socket, 'data');
  assert.equal(String(first), 'hello bytes');
});

test('a session connection that is lost on its way is asked for again', async (t) => {
  const { link, dial, seen } = await listen(t);
  const control = await dial('C', 0);
  const asked: unknown[] = [];
  const splitter = new FrameSplitter();
  control.on('data', (chunk: Buffer) => {
    for (const frame of splitter.push(chunk)) asked.push(decodeMessage(frame).payload['count']);
  });
  control.write(encodeMessage(0, 'svc.hello', { processes: [] }));
  await waitUntil(() => seen.includes('connected'));
  const session = link.takeSession(AbortSignal.timeout(60_000));
  // Two spares and the one for the client; nothing is dialled, and so the client's is asked for once more.
  await waitUntil(() => asked.length > 2);
  assert.deepEqual(asked.slice(0, 3), [2, 1, 1]);
  await dial('S', 9);
  assert.equal((await session).connection, 9);
});

test('without a connection of svc-init a client is told to wait, and a wait ends with its signal', async (t) => {
  const { link, dial, seen } = await listen(t);
  await assert.rejects(link.takeSession(AbortSignal.timeout(60_000)), { code: 'unavailable' });
  (await dial('C', 0)).write(encodeMessage(0, 'svc.hello', { processes: [] }));
  await waitUntil(() => seen.includes('connected'));
  await assert.rejects(link.takeSession(AbortSignal.timeout(50)), { name: 'TimeoutError' });
});

test('a waiting request for a session fails when svc-init disconnects', async (t) => {
  const { link, dial, seen } = await listen(t);
  const control = await dial('C', 0);
  control.write(encodeMessage(0, 'svc.hello', { processes: [] }));
  await waitUntil(() => seen.includes('connected'));
  const waiting = [1, 2].map(() => link.takeSession(AbortSignal.timeout(5000)));
  const rejections = waiting.map((session) => assert.rejects(session, { code: 'unavailable' }));
  control.destroy();
  await Promise.all(rejections);
  assert.deepEqual(seen.slice(-1), ['disconnected']);
});

test('a new control connection takes the place of the old one, whose requests fail', async (t) => {
  const { link, dial, seen } = await listen(t);
  (await dial('C', 0)).write(encodeMessage(0, 'svc.hello', { processes: [] }));
  await waitUntil(() => seen.includes('connected'));
  const pending = assert.rejects(link.request('svc.configure', {}, AbortSignal.timeout(60_000)), {
    code: 'unavailable',
  });
  assert.equal(seen.at(-1), 'asked', 'before it is sent');
  const asked = seen.length;
  const peeked = assert.rejects(link.peek('svc.count', AbortSignal.timeout(60_000)), { code: 'unavailable' });
  assert.equal(seen.length, asked, 'a peek is not reported');
  (await dial('C', 0)).write(encodeMessage(0, 'svc.hello', { processes: [] }));
  await Promise.all([pending, peeked]);
  await waitUntil(() => seen.filter((event) => event === 'connected').length === 2);
  assert.equal(link.isConnected, true);
});

test('a guest that reads nothing of what it is sent loses its connection before it costs memory', async (t) => {
  const { link, dial, seen } = await listen(t);
  const control = await dial('C', 0);
  control.pause();
  control.write(encodeMessage(0, 'svc.hello', { processes: [] }));
  await waitUntil(() => seen.includes('connected'));
  const data = new Uint8Array(1024 * 1024);
  for (let count = 0; count < 64 && link.isConnected; count++) {
    link.notify('svc.process.ack', { key: 'main', data });
    await new Promise((resolve) => setImmediate(resolve));
  }
  assert.equal(link.isConnected, false);
  assert.ok(seen.includes('disconnected'));
});

test('a guest that greets twice or sends larger messages than svc-init is disconnected', async (t) => {
  const { link, dial, seen } = await listen(t);
  const control = await dial('C', 0);
  const hello = encodeMessage(0, 'svc.hello', { processes: [] });
  const output = (bytes: number) =>
    encodeMessage(0, 'svc.process.output', {
      key: `${bytes}`,
      stream: 'stdout',
      offset: 0,
      data: new Uint8Array(bytes),
    });
  control.resume();
  for (const frame of [hello, output(64 * 1024), output(64 * 1024 + 1)]) control.write(frame);
  control.write(hello);
  await closed(control);
  assert.deepEqual(seen.slice(0, 2), ['connected', 'output 65536']);
  assert.ok(!seen.includes('output 65537'));
  assert.equal(seen.filter((event) => event === 'connected').length, 1);
  assert.equal(link.isConnected, false);
});

test('random bytes on a control connection do not stop the engine from accepting the next one', async (t) => {
  const { dial, seen } = await listen(t);
  const garbage = fc.oneof(
    fc.uint8Array({ maxLength: 200 }),
    fc
      .record({
        id: fc.nat(),
        type: fc.constantFrom(
          'svc.hello',
          'svc.status',
          'svc.process.output',
          'svc.process.exited',
          'svc.killed',
          'x',
        ),
        payload: fc.dictionary(
          fc.string(),
          fc.oneof(fc.string(), fc.integer(), fc.boolean(), fc.constant(null), fc.uint8Array()),
        ),
      })
      .map(({ id, type, payload }) => encodeMessage(id % 2 ** 31, type, payload)),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(garbage, { maxLength: 10 }), async (chunks) => {
      const socket = await dial('C', 0);
      for (const chunk of chunks) socket.write(chunk);
      socket.resume().end();
      await closed(socket);
    }),
    { numRuns: 200 },
  );
  seen.length = 0;
  (await dial('C', 0)).write(encodeMessage(0, 'svc.hello', { processes: [] }));
  await waitUntil(() => seen.includes('connected'));
});

/** A clock that the test moves by hand, for a buckets of 4 MiB a second. */
function slowBuckets(): { readonly clock: { ms: number }; readonly buckets: TokenBuckets } {
  const clock = { ms: 0 };
  const limits = { totalPerSecond: 2 ** 24, perSecond: 2 ** 22, burst: 2 ** 20 };
  return { clock, buckets: new TokenBuckets(limits, () => clock.ms) };
}

test('a guest over its rate is not read from, so that the engine buffers next to nothing', async (t) => {
  const { buckets } = slowBuckets();
  const { dial, seen, heard } = await listen(t, buckets);
  const control = await dial('C', 0);
  control.write(encodeMessage(0, 'svc.hello', { processes: [] }));
  const data = new Uint8Array(64 * 1024);
  const piece = encodeMessage(0, 'svc.process.output', { key: 'k', stream: 'stdout', offset: 0, data });
  for (let count = 0; count < 256; count++) control.write(piece);
  await waitUntil(() => heard.bytes > 0);
  await waitUntil(() => control.writableLength > 0);
  // Time stands still for the buckets: however often the engine looks, nothing more is read.
  for (let turn = 0; turn < 100; turn++) await new Promise((resolve) => setTimeout(resolve, 2));
  assert.ok(heard.bytes <= 2 ** 20 + 2 ** 17, `${heard.bytes} bytes were heard in no time`);
  assert.ok(control.writableLength > 2 ** 23, 'the guest still has most of it');
  assert.ok(seen.includes('connected'));
});

test('many small messages cost as much as few large ones', async (t) => {
  const { buckets } = slowBuckets();
  const { dial, heard } = await listen(t, buckets);
  const control = await dial('C', 0);
  const payload = { key: 'k', stream: 'stdout', offset: 0, data: Buffer.from('y') };
  const one = encodeMessage(0, 'svc.process.output', payload);
  control.write(Buffer.concat(Array.from({ length: 20_000 }, () => one)));
  await waitUntil(() => heard.bytes > 0);
  for (let turn = 0; turn < 50; turn++) await new Promise((resolve) => setTimeout(resolve, 2));
  assert.ok(heard.bytes < 1000, `${heard.bytes} messages were acted on in no time`);
});

test('the socket of a guest that keeps dialling is closed for a while; svc-init stays connected and can dial again', async (t) => {
  const { clock, buckets } = slowBuckets();
  const { link, dial, seen, path } = await listen(t, buckets);
  const control = await dial('C', 0);
  control.write(encodeMessage(0, 'svc.hello', { processes: [] }));
  await waitUntil(() => seen.includes('connected'));
  let accepted = 0;
  for (let count = 0; count < 1000 && existsSync(path); count++) {
    const dialled = connect(path);
    t.after(() => dialled.destroy());
    accepted += await once(dialled, 'connect').then(
      () => 1,
      () => 0,
    );
    dialled.on('error', () => {});
    if (count === 0) await dial('S', 1);
  }
  assert.ok(!existsSync(path), 'the socket is closed');
  assert.ok(accepted <= 200, `${accepted} were accepted`);
  assert.ok(link.isConnected);
  assert.equal(
    (await link.takeSession(AbortSignal.timeout(60_000))).connection,
    1,
    'connections that exist stay',
  );
  clock.ms += 60_000;
  await waitUntil(() => existsSync(path));
  await dial('S', 2);
  assert.equal((await link.takeSession(AbortSignal.timeout(60_000))).connection, 2);
});

test('svc-init may dial as often as it is asked to', async (t) => {
  const { buckets } = slowBuckets();
  const { link, dial, seen, path } = await listen(t, buckets);
  (await dial('C', 0)).write(encodeMessage(0, 'svc.hello', { processes: [] }));
  await waitUntil(() => seen.includes('connected'));
  for (let number = 1; number <= 300; number++) {
    await dial('S', number);
    const session = await link.takeSession(AbortSignal.timeout(60_000));
    link.drop(session);
  }
  assert.ok(existsSync(path));
});
