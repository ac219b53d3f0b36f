import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { connect, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Duplex } from 'node:stream';
import { afterEach, after, before, test } from 'node:test';
import { setImmediate, setTimeout as delay } from 'node:timers/promises';

/** Returns when what arrives at either side is on its way to the other. */
type Join = (one: Duplex, other: Duplex) => Promise<void>;

const MIB = 1024 * 1024;
const MAX_SENT_BYTES = 16 * MIB;

let folder = '';
const far: Socket[] = [];

/** What whoever joins two connections promises. */
export function joinSuite(joinThem: Join): void {
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'svc-join-'));
  });
  after(() => rm(folder, { recursive: true, force: true }));
  // Whatever the join leaves open keeps this process from exiting.
  afterEach(() => far.splice(0).forEach((socket) => socket.destroy()));

  test('bytes reach the other side whole and in order, both ways at once, also when a reader is slow', async () => {
    const { left, right } = await joined(joinThem);
    const [toRight, toLeft] = [randomBytes(24 * MIB), randomBytes(24 * MIB)];
    left.write(toRight);
    right.write(toLeft);
    const [atRight, atLeft] = await Promise.all([
      hashOf(right, { isSlow: true, bytes: toRight.length }),
      hashOf(left, { isSlow: false, bytes: toLeft.length }),
    ]);
    assert.equal(atRight, sha256(toRight));
    assert.equal(atLeft, sha256(toLeft));
  });

  test('a side that reads nothing stops the other before memory fills', async () => {
    const { left, right } = await joined(joinThem);
    right.pause();
    let sent = 0;
    const chunk = Buffer.alloc(MIB);
    // The kernel's own buffers and ours take a few MiB; what does not drain for this long is held up.
    while (sent < 64 * MIB) {
      sent += chunk.length;
      if (left.write(chunk)) continue;
      const drained = await Promise.race([once(left, 'drain').then(() => true), delay(300, false)]);
      if (!drained) break;
    }
    assert.ok(sent < MAX_SENT_BYTES, `${sent} bytes were taken`);
  });

  test('a side that leaves while nothing of it is taken is noticed', async () => {
    const one = await pair();
    const other = await pair();
    await joinThem(one.near, other.near);
    for (let sent = 0; sent < 8; sent++) one.far.write(Buffer.alloc(MIB));
    await once(other.far, 'readable');
    one.far.destroy();
    await once(one.near, 'close', { signal: AbortSignal.timeout(60_000) });
  });

  test('when one side leaves, the other gets what was sent before and then its end', async () => {
    const { left, right } = await joined(joinThem);
    const text = readAll(right);
    left.end('the last words');
    assert.equal((await text).toString('utf8'), 'the last words');
  });

  test('bytes that arrived before the join are not lost', async () => {
    const one = await pair();
    const other = await pair();
    one.far.write('early, ');
    await once(one.near, 'readable');
    await setImmediate();
    await joinThem(one.near, other.near);
    const text = readAll(other.far);
    one.far.end('late');
    assert.equal((await text).toString('utf8'), 'early, late');
  });

  test('destroying a joined socket, as its owner may, ends both far sides', async () => {
    const one = await pair();
    const other = await pair();
    await joinThem(one.near, other.near);
    one.near.destroy();
    await Promise.all([readAll(one.far), readAll(other.far)]);
  });
}

async function joined(joinThem: Join): Promise<{ left: Socket; right: Socket }> {
  const one = await pair();
  const other = await pair();
  await joinThem(one.near, other.near);
  return { left: one.far, right: other.far };
}

/** The two ends of one connection; the near one is accepted and paused, as the engine's are. */
export async function pair(): Promise<{ near: Socket; far: Socket }> {
  const path = join(folder, randomBytes(6).toString('hex'));
  const server = createServer({ pauseOnConnect: true, allowHalfOpen: true });
  server.listen(path);
  await once(server, 'listening');
  const socket = connect({ path, allowHalfOpen: true });
  far.push(socket);
  const [near] = (await once(server, 'connection')) as [Socket];
  server.close();
  return { near, far: socket };
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
