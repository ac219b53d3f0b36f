import assert from 'node:assert/strict';
import { once } from 'node:events';
import { Duplex } from 'node:stream';
import { test } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { decodeMessage, encodeMessage, FrameSplitter, type Message, type Payload } from '@svc/contract';
import { HELLO } from '@svc/contract/testing';
import ssh2, { type Client, type ConnectConfig } from 'ssh2';
import { RandomGenerator } from '../../testing/random-generator.ts';
import { mutateSsh } from '../../testing/mutate-ssh.ts';
import { run, startTestGateway } from '../../testing/ssh-gateway.ts';

/** A short run by default, the same every time; `make fuzz` sends more. */
const PACKETS = Number(process.env['SVC_FUZZ_SSH_PACKETS'] ?? 150);
const SEED = Number(process.env['SVC_FUZZ_SEED'] || 1);
const MIB = 1024 * 1024;
const AT_A_TIME = 8;
/** Few enough that slots which are not given back run out within a short run. */
const CONNECTIONS = {
  total: 48,
  unauthenticated: 24,
  unauthenticatedPerAddress: 16,
  newPerAddress: 1_000_000,
};
const MAX_GROWTH = 200 * MIB;
/** For a visitor that has said something wrong and gets no answer; none of what is checked depends on it. */
const UNANSWERED_MS = 1000;
const LOGIN_MS = 60_000;
const VISITS_BETWEEN_CHECKS = 40;
/** The length of a packet, and how much of its end is padding. */
const HEAD_BYTES = 5;

test('packets of SSH and SFTP with a wrong field end at most their own connection', async (t) => {
  const gateway = await startTestGateway(t, { connections: CONNECTIONS });
  const { privateKey } = await gateway.addMember('ada@acme.example');
  gateway.orchestrator.createAgent = harmlessAgent;
  await gateway.addSandbox('calm-fox');
  const login = { host: '127.0.0.1', port: gateway.port, username: 'calm-fox', privateKey };
  const before = await gateway.connect(login);
  const rss = process.memoryUsage().rss;
  const random = new RandomGenerator(SEED);
  const sent = { mutated: 0, afterLogin: 0 };
  for (let visits = 0; sent.mutated < PACKETS; visits += AT_A_TIME) {
    await Promise.all(Array.from({ length: AT_A_TIME }, () => visit(login, random, sent)));
    if (visits % VISITS_BETWEEN_CHECKS !== 0) continue;
    assert.equal((await run(before, 'true')).code, 0, 'who was there is served');
    const later = await gateway.connect(login);
    assert.equal((await run(later, 'true')).code, 0, 'a new client is served');
    later.end();
  }
  const grown = process.memoryUsage().rss - rss;
  assert.ok(grown < MAX_GROWTH, `memory grew by ${grown / MIB} MiB`);
  assert.ok(sent.afterLogin > sent.mutated / 10, `${sent.afterLogin} of ${sent.mutated} behind a login`);
  assert.ok(sent.afterLogin < sent.mutated * 0.95, `${sent.mutated - sent.afterLogin} in front of one`);
});

/** One connection that does all that a member can; from some packet on most of what it sends is wrong. */
async function visit(
  login: ConnectConfig,
  random: RandomGenerator,
  sent: { mutated: number; afterLogin: number },
): Promise<void> {
  const client = new ssh2.Client();
  client.on('error', () => undefined);
  const closed = once(client, 'close').catch(() => undefined);
  client.connect({ ...login, readyTimeout: LOGIN_MS });
  let isLoggedIn = false;
  const answered = Promise.withResolvers<void>();
  const wrong = Promise.withResolvers<void>();
  client.once('ready', () => {
    isLoggedIn = true;
    doEverything(client, () => answered.resolve());
  });
  const from = random.below(2) === 0 ? random.below(6) : 6 + random.below(12);
  mutateSentBy(client, (payload, place) => {
    if (place < from || random.below(3) === 0) return payload;
    sent.mutated += 1;
    if (isLoggedIn) sent.afterLogin += 1;
    wrong.resolve();
    return mutateSsh(payload, random);
  });
  const unanswered = wrong.promise.then(() => setTimeout(UNANSWERED_MS, undefined, { ref: false }));
  await Promise.race([closed, answered.promise, unanswered]);
  client.destroy();
}

/** What ssh2 is about to encrypt goes through `change` first, so that lengths and MACs are right for what comes of it. */
function mutateSentBy(client: Client, change: (payload: Buffer, place: number) => Buffer): void {
  // Not in its types; should it move, no packet is mutated and the test says so.
  const protocol = (client as unknown as { readonly _protocol: Protocol })._protocol;
  let place = 0;
  const changing = (writer: Writer): Writer => {
    const finalize = writer.finalize.bind(writer);
    writer.finalize = (packet, isKeyExchange) => {
      // While keys are exchanged other packets wait, without the head that they get afterwards.
      if (protocol._kexinit !== undefined && isKeyExchange !== true) return finalize(packet, isKeyExchange);
      const payload = packet.subarray(HEAD_BYTES, packet.length - (packet[HEAD_BYTES - 1] ?? 0));
      const changed = change(payload, place);
      place += 1;
      if (changed === payload) return finalize(packet, isKeyExchange);
      const other = protocol._cipher.allocPacket(changed.length);
      changed.copy(other, HEAD_BYTES);
      return finalize(other, isKeyExchange);
    };
    return writer;
  };
  // It gets another writer with its keys.
  let writer = changing(protocol._packetRW.write);
  const use = (next: Writer) => (writer = changing(next));
  Object.defineProperty(protocol._packetRW, 'write', { get: () => writer, set: use });
}

interface Writer {
  finalize: (packet: Buffer, isKeyExchange?: boolean) => Buffer;
}

interface Protocol {
  readonly _packetRW: { write: Writer };
  readonly _cipher: { readonly allocPacket: (payloadBytes: number) => Buffer };
  readonly _kexinit: unknown;
}

/** A fake sandbox that runs, dials and writes nothing, because random requests must not act on this host. */
function harmlessAgent(): Duplex {
  const splitter = new FrameSplitter();
  const agent = new Duplex({
    read: () => undefined,
    write: (chunk: Uint8Array, _encoding, done) => {
      for (const frame of splitter.push(chunk)) answer(decodeMessage(frame));
      done();
    },
  });
  const answer = ({ id, type }: Message) => {
    const send = (kind: string, payload: Payload) => void agent.push(encodeMessage(id, kind, payload));
    if (type === 'core.exec.request') {
      send('core.exec.started', { pid: 1 });
      send('core.exec.stdout', { data: Buffer.from('/\n') });
      send('core.exec.exited', { code: 0, signal: null, reason: 'exit' });
    } else if (type === 'core.tcp.connect') send('core.tcp.failed', { error: 'Connection refused' });
    else if (type === 'core.fs.request') send('core.fs.response', { ok: false, error: 'ENOENT', data: null });
    else if (type === 'core.ping') send('core.pong', {});
  };
  agent.push(HELLO);
  return agent;
}

/** Answers arbitrarily: only the gateway's handling of the requests is tested. */
function doEverything(client: Client, onLastAnswer: () => void): void {
  const ignore = () => undefined;
  attempt(() =>
    client.exec('true', { pty: true, env: { A: 'b' } }, (_error, channel) => {
      channel?.on('error', ignore).resume();
      attempt(() => channel?.setWindow(40, 100, 0, 0));
      attempt(() => channel?.signal('TERM'));
      attempt(() => channel?.end('input'));
    }),
  );
  attempt(() => client.shell((_error, channel) => channel?.on('error', ignore).end('exit\n')));
  attempt(() => client.subsys('other', ignore));
  attempt(() =>
    client.forwardOut('127.0.0.1', 1, '127.0.0.1', 80, (_error, channel) =>
      channel?.on('error', ignore).end('x'),
    ),
  );
  attempt(() => client.forwardIn('127.0.0.1', 0, ignore));
  attempt(() =>
    client.sftp((_error, sftp) => {
      if (sftp === undefined) return onLastAnswer();
      sftp.on('error', ignore);
      attempt(() => sftp.realpath('.', ignore));
      attempt(() => sftp.readdir('/', ignore));
      attempt(() => sftp.stat('/a', ignore));
      attempt(() => sftp.mkdir('/b', ignore));
      attempt(() => sftp.rename('/a', '/c', ignore));
      attempt(() => sftp.symlink('/a', '/d', ignore));
      attempt(() => sftp.setstat('/a', { mode: 0o600, uid: 1, gid: 1 }, ignore));
      attempt(() =>
        sftp.open('/f', 'w', (failure, handle) => {
          if (failure !== undefined) return onLastAnswer();
          attempt(() => sftp.write(handle, Buffer.from('content'), 0, 7, 0, ignore));
          attempt(() => sftp.read(handle, Buffer.alloc(8), 0, 8, 0, ignore));
          attempt(() => sftp.close(handle, onLastAnswer));
        }),
      );
    }),
  );
}

/** A client that is gone says so by throwing. */
function attempt(act: () => void): void {
  try {
    act();
  } catch {
    // Its connection was ended, which is what may happen.
  }
}
