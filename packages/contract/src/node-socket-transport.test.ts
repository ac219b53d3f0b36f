import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { connect, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { duplexPair, type Duplex } from 'node:stream';
import { after, afterEach, before, test } from 'node:test';
import { setImmediate, setTimeout as delay } from 'node:timers/promises';
import * as tls from 'node:tls';
import { socketTransport } from './node-socket-transport.ts';

const MIB = 1024 * 1024;
const SENT = randomBytes(8 * MIB);

interface Pair {
  readonly near: Duplex;
  readonly far: Duplex;
}

let folder = '';
const opened: Duplex[] = [];
before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'svc-transport-'));
});
after(() => rm(folder, { recursive: true, force: true }));
// Sockets that a transport leaves open would keep this process from exiting.
afterEach(() => opened.splice(0).forEach((stream) => stream.destroy()));

/** Kinds of connections of a transport; only the first is read into reused buffers. */
const KINDS: Readonly<Record<string, () => Promise<Pair>>> = {
  'a socket': socketPair,
  'a socket of a Node that takes no buffers': async () => {
    const pair = await socketPair();
    const { _handle: handle } = pair.near as unknown as { _handle: object };
    Object.defineProperty(handle, 'useUserBuffer', { value: undefined });
    return pair;
  },
  TLS: tlsPair,
  'a stream that is no socket': async () => {
    const [near, far] = duplexPair();
    return keep({ near, far });
  },
};

for (const [kind, open] of Object.entries(KINDS)) {
  test(`bytes arrive whole and in order over ${kind}, also when a chunk is overwritten after the next one`, async () => {
    const { near, far } = await open();
    const hash = createHash('sha256');
    far.end(SENT);
    let lent: Uint8Array | undefined;
    for await (const chunk of socketTransport(near).readable) {
      lent?.fill(0xee);
      // Time in which the transport could fill all its buffers, and with them read over what it has lent.
      for (let turn = 0; turn < 5; turn++) await setImmediate();
      hash.update(chunk);
      lent = chunk;
    }
    assert.equal(hash.digest('hex'), sha256(SENT));
  });

  test(`a reader that asks for nothing stops the peer before memory fills, over ${kind}`, async () => {
    const { near, far } = await open();
    const reading = socketTransport(near).readable[Symbol.asyncIterator]();
    far.write('first');
    const first = await reading.next();
    let sent = 0;
    while (sent < 64 * MIB) {
      sent += MIB;
      if (far.write(Buffer.alloc(MIB))) continue;
      // What does not drain for this long is held up.
      if (!(await Promise.race([once(far, 'drain').then(() => true), delay(200, false)]))) break;
    }
    assert.ok(sent < 16 * MIB, `${sent} bytes were taken`);
    assert.equal(Buffer.from(first.value ?? []).toString(), 'first');
  });

  test(`writes arrive in order over ${kind}, and closing ends the peer and what was given`, async () => {
    const { near, far } = await open();
    const transport = socketTransport(near);
    const closed = once(near, 'close');
    const received = createHash('sha256');
    const reading = (async () => {
      let missing = SENT.length;
      for await (const chunk of far.iterator({ destroyOnReturn: false })) {
        received.update(chunk as Buffer);
        missing -= (chunk as Buffer).length;
        if (missing === 0) return;
      }
    })();
    for (let start = 0; start < SENT.length; start += MIB)
      await transport.write(SENT.subarray(start, start + MIB));
    await reading;
    transport.close();
    transport.close();
    await closed;
    assert.equal(received.digest('hex'), sha256(SENT));
    assert.deepEqual(await Array.fromAsync(transport.readable), []);
    await assert.rejects(transport.write(Uint8Array.of(1)), /closed/);
  });
}

test('a socket is read into the same few buffers again and again', async () => {
  const { near, far } = await socketPair();
  far.end(SENT);
  const buffers = new Set<ArrayBufferLike>();
  for await (const chunk of socketTransport(near).readable) buffers.add(chunk.buffer);
  // One or both of the small ones of the beginning.
  assert.ok(buffers.size <= 4, `${buffers.size} buffers`);
});

test('bytes and an end that came before the transport are not lost', async () => {
  const { near, far } = await socketPair();
  far.write('early, ');
  await once(near, 'readable');
  far.end('last');
  await delay(20);
  const chunks: Buffer[] = [];
  for await (const chunk of socketTransport(near).readable) chunks.push(Buffer.from(chunk));
  assert.equal(Buffer.concat(chunks).toString(), 'early, last');
});

test('destroying the socket, as its former owner may, ends the reading and the peer', async () => {
  const { near, far } = await socketPair();
  const { readable } = socketTransport(near);
  near.destroy();
  assert.deepEqual(await Array.fromAsync(readable), []);
  assert.deepEqual(await Array.fromAsync(far), []);
});

function keep(pair: Pair): Pair {
  // The tests check what arrives, not how the other end closes.
  pair.far.on('error', () => undefined);
  opened.push(pair.near, pair.far);
  return pair;
}

/** The near one is accepted and paused, as the engine's are. */
async function socketPair(): Promise<Pair> {
  const path = join(folder, randomBytes(6).toString('hex'));
  const server = createServer({ pauseOnConnect: true, allowHalfOpen: true });
  server.listen(path);
  await once(server, 'listening');
  const far = connect({ path, allowHalfOpen: true });
  const [near] = (await once(server, 'connection')) as [Socket];
  server.close();
  return keep({ near, far });
}

/** With a shared key, which needs no certificate. */
async function tlsPair(): Promise<Pair> {
  const psk = randomBytes(32);
  const path = join(folder, randomBytes(6).toString('hex'));
  const options = { ciphers: 'PSK', maxVersion: 'TLSv1.2' } as const;
  const server = tls.createServer({ ...options, pskCallback: () => psk });
  server.listen(path);
  await once(server, 'listening');
  const far = tls.connect({
    ...options,
    path,
    pskCallback: () => ({ psk, identity: 'test' }),
    checkServerIdentity: () => undefined,
  });
  const [near] = (await once(server, 'secureConnection')) as [tls.TLSSocket];
  server.close();
  return keep({ near, far });
}

function sha256(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}
