import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import { after, before, test, type TestContext } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { connect as connectTls, createServer as createTlsServer, type TLSSocket } from 'node:tls';
import { TestAuthority, waitUntil } from '@svc/contract/testing';
import { TlsCredentials, type TlsFiles } from '../client/tls-credentials.ts';
import { rememberTcp } from './below-tls.ts';
import { joinSockets } from './join-sockets.ts';

const MIB = 1024 * 1024;
const MAX_SENT_BYTES = 24 * MIB;

let authority: TestAuthority;
let files: TlsFiles;
before(async () => {
  authority = await TestAuthority.create();
  files = await authority.engine();
});
after(() => authority[Symbol.asyncDispose]());

test('bytes of a caller over TLS arrive whole and in order, both ways at once', async (t) => {
  const { caller, guest } = await joined(t);
  const [toGuest, toCaller] = [randomBytes(12 * MIB), randomBytes(12 * MIB)];
  caller.write(toGuest);
  guest.far.write(toCaller);
  const [atGuest, atCaller] = await Promise.all([
    readBytes(guest.far, toGuest.length),
    readBytes(caller, toCaller.length),
  ]);
  assert.equal(sha256(atGuest), sha256(toGuest));
  assert.equal(sha256(atCaller), sha256(toCaller));
});

test('a side that reads nothing stops the other before memory fills', async (t) => {
  for (const reads of ['caller', 'guest'] as const) {
    const { caller, guest } = await joined(t);
    const [from, to] = reads === 'caller' ? [guest.far, caller] : [caller, guest.far];
    to.pause();
    let sent = 0;
    const chunk = Buffer.alloc(MIB);
    while (sent < 64 * MIB) {
      sent += chunk.length;
      if (from.write(chunk)) continue;
      const drained = await Promise.race([once(from, 'drain').then(() => true), delay(300, false)]);
      if (!drained) break;
    }
    assert.ok(sent < MAX_SENT_BYTES, `${sent} bytes were taken`);
  }
});

test('a caller whose connection was reset while the guest takes nothing is noticed', async (t) => {
  const { caller, raw, near, guest } = await joined(t);
  guest.far.pause();
  for (let sent = 0; sent < 8; sent++) caller.write(Buffer.alloc(MIB));
  // From here on the caller is not read, so its end is not seen.
  await delay(100);
  reset(raw);
  await waitUntil(() => near.destroyed && guest.near.destroyed);
});

test('when the caller ends, the guest gets what was sent before and then its end; and the other way round', async (t) => {
  const one = await joined(t);
  one.caller.end('the last words');
  assert.equal(
    String(Buffer.concat(await Array.fromAsync(one.guest.far as AsyncIterable<Buffer>))),
    'the last words',
  );
  const other = await joined(t);
  const sent = randomBytes(2 * MIB);
  other.guest.far.end(sent);
  const heard = Buffer.concat(await Array.fromAsync(other.caller as AsyncIterable<Buffer>));
  assert.equal(sha256(heard), sha256(sent));
});

/** A caller over TLS and the connection below it, joined with a guest. */
async function joined(t: TestContext) {
  const server = createTlsServer({ ...new TlsCredentials(files).current, minVersion: 'TLSv1.3' });
  rememberTcp(server);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const accepted = once(server, 'secureConnection') as Promise<[TLSSocket]>;
  const raw = connect(port, '127.0.0.1');
  const caller = connectTls({ socket: raw, ca: new TlsCredentials(files).current.ca, host: '127.0.0.1' });
  const [near] = await accepted;
  const guest = await plainPair(t);
  for (const socket of [raw, caller, near]) socket.on('error', () => undefined);
  t.after(() => {
    for (const socket of [raw, caller, near]) socket.destroy();
    server.close();
  });
  // As the engine does when it has told svc-init.
  near.once('close', () => guest.near.destroy());
  joinSockets(near, guest.near, () => undefined);
  return { caller, raw, near, guest };
}

async function plainPair(t: TestContext): Promise<{ readonly near: Socket; readonly far: Socket }> {
  const server = createServer({ pauseOnConnect: true });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const accepted = once(server, 'connection') as Promise<[Socket]>;
  const far = connect((server.address() as AddressInfo).port, '127.0.0.1');
  const [near] = await accepted;
  t.after(() => {
    far.destroy();
    near.destroy();
    server.close();
  });
  return { near, far };
}

/** At once, as the kernel does for a process that is killed; `resetAndDestroy` waits for what is not sent yet. */
function reset(socket: Socket): void {
  Object.assign(socket, { resetAndClosing: true }).destroy();
}

/** The socket stays open. */
async function readBytes(socket: Socket, length: number): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let read = 0;
  for await (const chunk of socket.iterator({ destroyOnReturn: false })) {
    chunks.push(chunk as Buffer);
    read += (chunk as Buffer).length;
    if (read >= length) break;
  }
  return Buffer.concat(chunks);
}

function sha256(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('hex');
}
