import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import { test } from 'node:test';
import { waitUntil } from '@svc/contract/testing';
import ssh2, { type Client, type ConnectConfig } from 'ssh2';
import { removeMember } from '../../store/members.ts';
import { removeSshKey } from '../../store/ssh-keys.ts';
import { makeEd25519Pair } from './ed25519-pair.ts';
import { openExec, run, startTestGateway, type TestGateway } from '../../testing/ssh-gateway.ts';

async function refusalOf(gateway: TestGateway, config: ConnectConfig): Promise<string> {
  try {
    await gateway.connect(config);
  } catch (error) {
    return String(error);
  }
  throw new Error('a login was accepted');
}

async function eventsOf({ database }: TestGateway): Promise<readonly { type: string; payload: string }[]> {
  return await database
    .selectFrom('events')
    .select(['event_type as type', 'payload'])
    .orderBy('sequence')
    .execute();
}

test('a member runs commands with input, output, exit status and signal', async (t) => {
  const gateway = await startTestGateway(t);
  const { privateKey } = await gateway.addMember('ada@acme.example');
  await gateway.addSandbox('calm-fox');
  const client = await gateway.connect({ username: 'calm-fox', privateKey });
  assert.deepEqual(await run(client, 'cat; echo no >&2; exit 3', 'in'), {
    code: 3,
    signal: null,
    stdout: 'in',
    stderr: 'no\n',
  });
  assert.equal((await run(client, 'kill -TERM $$')).signal, 'SIGTERM');
});

test('a client that reads neither stream for a while, one after the other, gets all of both', async (t) => {
  const gateway = await startTestGateway(t);
  const { privateKey } = await gateway.addMember('ada@acme.example');
  await gateway.addSandbox('calm-fox');
  const client = await gateway.connect({ username: 'calm-fox', privateKey });
  // What the client takes without being read: what it keeps, and the window that it opened before it was full.
  const [size, held] = [20_000_000, 3 * 1024 * 1024];
  const script = `head -c ${size} /dev/zero; head -c ${size} /dev/zero >&2; exit 7`;
  const channel = await openExec(client, script);
  const exited = once(channel, 'exit');
  const lengths = { stdout: 0, stderr: 0 };
  await waitUntil(() => channel.readableLength >= held, 'stdout waits for us');
  channel.on('data', (chunk: Buffer) => (lengths.stdout += chunk.length));
  await waitUntil(() => channel.stderr.readableLength >= held, 'stderr waits for us');
  channel.stderr.on('data', (chunk: Buffer) => (lengths.stderr += chunk.length));
  assert.deepEqual(await exited, [7]);
  await waitUntil(() => lengths.stdout >= size && lengths.stderr >= size, 'all of both');
  assert.deepEqual(lengths, { stdout: size, stderr: size });
});

test('a refused user learns nothing about what exists', async (t) => {
  const gateway = await startTestGateway(t);
  const { privateKey } = await gateway.addMember('ada@acme.example');
  const outsider = await gateway.addMember('eve@other.example', 'other');
  await gateway.addSandbox('calm-fox');
  const unregistered = makeEd25519Pair().privateKey;
  const refusals = await Promise.all([
    refusalOf(gateway, { username: 'calm-fox', privateKey: outsider.privateKey }),
    refusalOf(gateway, { username: 'no-such', privateKey: outsider.privateKey }),
    refusalOf(gateway, { username: 'no-such', privateKey }),
    refusalOf(gateway, { username: '../calm-fox', privateKey }),
    refusalOf(gateway, { username: 'calm-fox', privateKey: unregistered }),
    refusalOf(gateway, { username: 'calm-fox', password: 'guess' }),
  ]);
  assert.equal(new Set(refusals).size, 1, refusals.join('\n'));
});

test('whether a key may be tried does not depend on the sandbox', async (t) => {
  const gateway = await startTestGateway(t);
  const { privateKey } = await gateway.addMember('ada@acme.example');
  await gateway.addSandbox('calm-fox');
  const key = ssh2.utils.parseKey(privateKey);
  assert.ok(!(key instanceof Error));
  const signed: string[] = [];
  for (const username of ['calm-fox', 'no-such']) {
    // Signs only what the server wants to see signed, and then wrongly.
    const agent = new (class extends ssh2.BaseAgent {
      override getIdentities(done: (error: Error | undefined, keys: ssh2.ParsedKey[]) => void) {
        done(undefined, [key]);
      }
      override sign(_key: unknown, data: Buffer, ...rest: unknown[]) {
        signed.push(username);
        const done = rest.at(-1) as (error: undefined, signature: Buffer) => void;
        done(undefined, Buffer.alloc(64, data.length % 251));
      }
    })();
    await refusalOf(gateway, { username, agent });
  }
  assert.deepEqual(signed, ['calm-fox', 'no-such']);
});

test('a connection may try only so many keys', async (t) => {
  const gateway = await startTestGateway(t, { maxAttempts: 3 });
  const { privateKey } = await gateway.addMember('ada@acme.example');
  await gateway.addSandbox('calm-fox');
  let tries = 0;
  const reason = await refusalOf(gateway, {
    username: 'calm-fox',
    authHandler: (_left, _partial, next) => {
      tries += 1;
      const guess = makeEd25519Pair().privateKey;
      next({ type: 'publickey', username: 'calm-fox', key: tries > 8 ? privateKey : guess });
    },
  });
  assert.ok(tries < 8, `${tries} tries: ${reason}`);
});

test('connections that do not log in are limited, and are closed', async (t) => {
  const connections = { total: 100, unauthenticated: 2, unauthenticatedPerAddress: 2, newPerAddress: 100 };
  const hasty = await startTestGateway(t, { connections, loginMs: 300 });
  const idle = [1, 2, 3].map(async () => await closeOf(connect(hasty.port, '127.0.0.1')));
  // The third one at once, the others in time.
  await Promise.all(idle);
  const gateway = await startTestGateway(t, { connections });
  const { privateKey } = await gateway.addMember('ada@acme.example');
  await gateway.addSandbox('calm-fox');
  const clients = [];
  // Those who are logged in do not count.
  for (let index = 0; index < 4; index += 1) {
    clients.push(await gateway.connect({ username: 'calm-fox', privateKey }));
  }
  assert.equal(clients.length, 4);
});

test('more connections to a sandbox than may be are refused', async (t) => {
  const gateway = await startTestGateway(t, { limits: { perSandbox: 1, perOrganization: 10 } });
  const { privateKey } = await gateway.addMember('ada@acme.example');
  await gateway.addSandbox('calm-fox');
  const first = await gateway.connect({ username: 'calm-fox', privateKey });
  const second = await gateway.connect({ username: 'calm-fox', privateKey });
  await once(second, 'close');
  first.end();
  await once(first, 'close');
  await waitUntil(async () => {
    const again = await gateway.connect({ username: 'calm-fox', privateKey });
    const outcome = await run(again, 'true').catch(() => undefined);
    return outcome?.code === 0;
  }, 'the place is free again');
});

test('an idle connection ends, and one that is used stays', async (t) => {
  const gateway = await startTestGateway(t, { inactivityMs: 300, recheckMs: 50 });
  const { privateKey } = await gateway.addMember('ada@acme.example');
  await gateway.addSandbox('calm-fox');
  // The clock advances with each line, so a slow machine makes no difference.
  t.mock.timers.enable({ apis: ['Date'], now: Date.now() });
  const client = await gateway.connect({ username: 'calm-fox', privateKey });
  const closed = once(client, 'close');
  const channel = await openExec(client, 'for i in 1 2 3 4 5 6 7 8; do echo $i; sleep 0.1; done');
  channel.stderr.resume();
  let output = '';
  channel.on('data', (chunk: Buffer) => {
    output += chunk.toString();
    t.mock.timers.tick(200);
  });
  await once(channel, 'close');
  assert.equal(output, '1\n2\n3\n4\n5\n6\n7\n8\n');
  t.mock.timers.tick(1000);
  await closed;
  await waitUntil(async () => (await eventsOf(gateway)).at(-1)?.type === 'ssh_session_closed', 'its end');
  const last = (await eventsOf(gateway)).at(-1);
  assert.match(last?.payload ?? '', /"reason":"inactivity"/);
});

test('a key that is revoked, or whose user left, ends its sessions and what they started', async (t) => {
  const gateway = await startTestGateway(t, { recheckMs: 30 });
  await gateway.addSandbox('calm-fox');
  const { database, organizationId } = gateway;
  const ada = await gateway.addMember('ada@acme.example');
  const bob = await gateway.addMember('bob@acme.example');
  const userOf = async (keyId: string) =>
    (
      await database
        .selectFrom('ssh_keys')
        .select('user_id')
        .where('id', '=', keyId)
        .executeTakeFirstOrThrow()
    ).user_id;
  const sessions: Promise<unknown>[] = [];
  for (const { privateKey } of [ada, bob]) {
    const client: Client = await gateway.connect({ username: 'calm-fox', privateKey });
    const channel = await openExec(client, 'echo on; cat');
    await once(channel, 'data');
    sessions.push(once(client, 'close'));
  }
  await removeSshKey(database, await userOf(ada.keyId), ada.keyId);
  await removeMember(database, organizationId, await userOf(bob.keyId));
  await Promise.all(sessions);
  assert.match(
    await refusalOf(gateway, { username: 'calm-fox', privateKey: ada.privateKey }),
    /authentication/,
  );
});

test('a sandbox that does not run says how to start it', async (t) => {
  const gateway = await startTestGateway(t);
  const { privateKey } = await gateway.addMember('ada@acme.example');
  await gateway.addSandbox('calm-fox', true);
  const client = await gateway.connect({ username: 'calm-fox', privateKey });
  const { code, stderr } = await run(client, 'true');
  assert.equal(code, 255);
  assert.match(stderr, /start it with: svc start box-calm-fox/);
});

test('a shell chosen by another user is text in messages', async (t) => {
  const gateway = await startTestGateway(t);
  const { privateKey } = await gateway.addMember('ada@acme.example');
  await gateway.addSandbox('calm-fox', false, 'x\nforged\u001B[2J\u202E');
  const client = await gateway.connect({ username: 'calm-fox', privateKey });
  const { code, stderr } = await run(client, 'true');
  assert.equal(code, 127);
  assert.match(stderr, /^svc: .*x<U\+000A>forged<U\+001B>\[2J<U\+202E>.*\r\n$/);
});

test('a forwarded connection keeps each direction open for as long as it is used', async (t) => {
  const gateway = await startTestGateway(t);
  const { privateKey } = await gateway.addMember('ada@acme.example');
  await gateway.addSandbox('calm-fox');
  // Answers only after the end of its input.
  const service = createServer({ allowHalfOpen: true }, (socket) => {
    const heard: Buffer[] = [];
    socket.on('data', (chunk: Buffer) => heard.push(chunk));
    socket.on('end', () => socket.end(`heard ${Buffer.concat(heard).length}`));
  });
  service.listen(0, '127.0.0.1');
  await once(service, 'listening');
  t.after(() => service.close());
  const { port } = service.address() as AddressInfo;
  const client = await gateway.connect({ username: 'calm-fox', privateKey });
  const channel = await new Promise<NodeJS.ReadWriteStream>((resolve, reject) => {
    client.forwardOut('127.0.0.1', 1, '127.0.0.1', port, (error, made) =>
      error ? reject(error) : resolve(made),
    );
  });
  channel.end(Buffer.alloc(3_000_000));
  const chunks = await Array.fromAsync(channel as AsyncIterable<Buffer>);
  assert.equal(Buffer.concat(chunks).toString(), 'heard 3000000');
  service.close();
  await assert.rejects(
    new Promise((resolve, reject) => {
      client.forwardOut('127.0.0.1', 1, '127.0.0.1', 1, (error, made) =>
        error ? reject(error) : resolve(made),
      );
    }),
  );
});

test('bytes that are no SSH neither end the gateway nor stay', async (t) => {
  const gateway = await startTestGateway(t, { loginMs: 500 });
  const { privateKey } = await gateway.addMember('ada@acme.example');
  await gateway.addSandbox('calm-fox');
  for (const bytes of [
    'GET / HTTP/1.1\r\n\r\n',
    'SSH-2.0-x\r\n\u0000\u0000\u0000\u0001garbage',
    '\u0000'.repeat(10_000),
  ]) {
    const socket = connect(gateway.port, '127.0.0.1');
    socket.write(bytes);
    await closeOf(socket);
  }
  // A login that timed out on a busy machine may be tried again.
  const isServed = async () => {
    const client = await gateway.connect({ username: 'calm-fox', privateKey }).catch(() => undefined);
    return client !== undefined && (await run(client, 'true')).code === 0;
  };
  await waitUntil(isServed, 'a member is served');
});

/** However it ends. */
async function closeOf(socket: Socket): Promise<void> {
  socket.on('error', () => undefined);
  socket.resume();
  await new Promise((resolve) => void socket.once('close', resolve));
}
