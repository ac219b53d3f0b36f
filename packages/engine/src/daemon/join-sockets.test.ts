import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { connect, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, afterEach, before, test } from 'node:test';
import { setImmediate, setTimeout as delay } from 'node:timers/promises';
import { waitUntil } from '@svc/contract/testing';
import { joinSockets } from './join-sockets.ts';

const MIB = 1024 * 1024;
const MAX_SENT_BYTES = 16 * MIB;

let folder = '';
const sockets: Socket[] = [];

before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'svc-join-'));
});
after(() => rm(folder, { recursive: true, force: true }));
// A socket that a join leaves open keeps this process from exiting.
afterEach(() => sockets.splice(0).forEach((socket) => socket.destroy()));

test('bytes reach the other side whole and in order, both ways at once, also when a reader is slow', async () => {
  const { caller, guest } = await joined();
  const [toGuest, toCaller] = [randomBytes(24 * MIB), randomBytes(24 * MIB)];
  caller.far.write(toGuest);
  guest.far.write(toCaller);
  const [atGuest, atCaller] = await Promise.all([
    hashOf(guest.far, { isSlow: true, bytes: toGuest.length }),
    hashOf(caller.far, { isSlow: false, bytes: toCaller.length }),
  ]);
  assert.equal(atGuest, sha256(toGuest));
  assert.equal(atCaller, sha256(toCaller));
});

test('a side that reads nothing stops the other before memory fills', async () => {
  for (const reads of ['caller', 'guest'] as const) {
    const { caller, guest } = await joined();
    const [from, to] = reads === 'caller' ? [guest.far, caller.far] : [caller.far, guest.far];
    to.pause();
    let sent = 0;
    const chunk = Buffer.alloc(MIB);
    // The kernel's own buffers and ours take a few MiB; what does not drain for this long is held up.
    while (sent < 64 * MIB) {
      sent += chunk.length;
      if (from.write(chunk)) continue;
      const drained = await Promise.race([once(from, 'drain').then(() => true), delay(300, false)]);
      if (!drained) break;
    }
    assert.ok(sent < MAX_SENT_BYTES, `${sent} bytes were taken`);
  }
});

test('output flows while the other direction is blocked, both ways', async () => {
  const { caller, guest } = await joined();
  caller.far.write(Buffer.alloc(8 * MIB));
  await once(guest.far, 'readable');
  guest.far.write('from the guest');
  assert.equal(String(await once(caller.far, 'data')), 'from the guest');
  const other = await joined();
  other.guest.far.write(Buffer.alloc(8 * MIB));
  await once(other.caller.far, 'readable');
  other.caller.far.write('from the caller');
  assert.equal(String(await once(other.guest.far, 'data')), 'from the caller');
});

test('a caller that leaves while the guest takes nothing is noticed', async () => {
  const { caller, guest } = await joined();
  guest.far.pause();
  for (let sent = 0; sent < 8; sent++) caller.far.write(Buffer.alloc(MIB));
  // From here on the caller is not read, so its end is not seen.
  await delay(100);
  caller.far.destroy();
  await waitUntil(() => caller.near.destroyed && guest.near.destroyed);
});

test('when the caller ends, the guest gets what was sent before and then its end', async () => {
  const { caller, guest } = await joined();
  const text = readAll(guest.far);
  caller.far.end('the last words');
  assert.equal((await text).toString('utf8'), 'the last words');
  await waitUntil(() => caller.near.destroyed && guest.near.destroyed);
});

test('the last bytes of a guest reach a slow caller, then the end', async () => {
  const { caller, guest } = await joined();
  const sent = randomBytes(2 * MIB);
  guest.far.end(sent);
  await once(caller.far, 'readable');
  // Longer than the interval at which a caller is checked.
  await delay(600);
  assert.equal(sha256(await readAll(caller.far)), sha256(sent));
  await waitUntil(() => caller.near.destroyed && guest.near.destroyed);
});

test('the last bytes of a guest reach the caller although the guest no longer reads', async () => {
  const { caller, guest } = await joined();
  guest.far.write('last words');
  guest.far.destroySoon();
  caller.far.write('are you there?');
  assert.equal((await readAll(caller.far)).toString(), 'last words');
});

test('bytes that arrived before the join are not lost', async () => {
  const caller = await pair({ allowHalfOpen: true });
  const guest = await pair();
  caller.far.write('early, ');
  await once(caller.near, 'readable');
  await setImmediate();
  joinSockets(caller.near, guest.near, () => {});
  const text = readAll(guest.far);
  caller.far.end('late');
  assert.equal((await text).toString('utf8'), 'early, late');
});

test('destroying a joined socket, as its owner may, ends both far sides', async () => {
  for (const side of ['caller', 'guest'] as const) {
    const both = await joined();
    both[side].near.destroy();
    await Promise.all([readAll(both.caller.far), readAll(both.guest.far)]);
  }
});

test('the owner is called before the guest sees the end of a caller', async () => {
  const caller = await pair({ allowHalfOpen: true });
  const guest = await pair();
  const order: string[] = [];
  caller.near.once('close', () => order.push('owner'));
  joinSockets(caller.near, guest.near, () => {});
  const ended = once(guest.far, 'end').then(() => order.push('guest'));
  guest.far.resume();
  caller.far.end();
  await ended;
  assert.deepEqual(order, ['owner', 'guest']);
});

test('the owner is called before each write to the guest, and only then', async () => {
  const caller = await pair({ allowHalfOpen: true });
  const guest = await pair();
  let calls = 0;
  caller.far.write('early');
  await once(caller.near, 'readable');
  await setImmediate();
  joinSockets(caller.near, guest.near, () => calls++);
  for (const [index, text] of ['early', 'late', 'later'].entries()) {
    if (index > 0) caller.far.write(text);
    assert.deepEqual([String(await once(guest.far, 'data')), calls], [text, index + 1]);
  }
  guest.far.write('back');
  await once(caller.far, 'data');
  assert.equal(calls, 3);
});

test('guests that flood, a caller that reads them and one that does not, hold up no other session', async () => {
  const [read, unread, quiet] = [await joined(), await joined(), await joined()];
  const piece = Buffer.alloc(256 * 1024);
  for (const { guest } of [read, unread]) {
    const flood = (): void => {
      while (guest.far.write(piece)) continue;
    };
    guest.far.on('drain', flood);
    flood();
  }
  let flooded = 0;
  read.caller.far.on('data', (chunk: Buffer) => void (flooded += chunk.length));
  unread.caller.far.pause();
  for (let round = 0; round < 50; round++) {
    const before = flooded;
    quiet.caller.far.write('ping');
    assert.equal(String(await once(quiet.guest.far, 'data')), 'ping');
    quiet.guest.far.write('pong');
    assert.equal(String(await once(quiet.caller.far, 'data')), 'pong');
    await waitUntil(() => flooded > before, { what: 'the flood goes on' });
  }
});

interface Pair {
  readonly near: Socket;
  readonly far: Socket;
}

async function joined(): Promise<{ caller: Pair; guest: Pair }> {
  const [caller, guest] = [await pair({ allowHalfOpen: true }), await pair()];
  // As the engine does when it has told svc-init.
  caller.near.once('close', () => guest.near.destroy());
  joinSockets(caller.near, guest.near, () => {});
  return { caller, guest };
}

/**
 * The two ends of one connection. The near one is as the engine's are: accepted and paused, and its errors are handled; a caller's, which
 * was accepted by an HTTP server, may be half open.
 */
async function pair(options: { readonly allowHalfOpen?: boolean } = {}): Promise<Pair> {
  const path = join(folder, randomBytes(6).toString('hex'));
  const server = createServer({ ...options, pauseOnConnect: true });
  server.listen(path);
  await once(server, 'listening');
  const far = connect({ path, allowHalfOpen: true });
  const [near] = (await once(server, 'connection')) as [Socket];
  server.close();
  for (const socket of [near, far]) {
    socket.on('error', () => socket.destroy());
    sockets.push(socket);
  }
  return { near, far };
}

async function hashOf(socket: Socket, options: { isSlow: boolean; bytes: number }): Promise<string> {
  const hash = createHash('sha256');
  let missing = options.bytes;
  for await (const chunk of socket.iterator({ destroyOnReturn: false })) {
    hash.update(chunk as Buffer);
    missing -= (chunk as Buffer).length;
    if (missing === 0) break;
    if (options.isSlow) await setImmediate();
  }
  return hash.digest('hex');
}

async function readAll(socket: Socket): Promise<Buffer> {
  return Buffer.concat((await Array.fromAsync(socket)) as Buffer[]);
}

function sha256(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}
