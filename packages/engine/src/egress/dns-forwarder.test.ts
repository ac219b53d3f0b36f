import assert from 'node:assert/strict';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { connect } from 'node:net';
import { test, type TestContext } from 'node:test';
import { waitUntil } from '@svc/contract/testing';
import fc from 'fast-check';
import { resolvePolicy } from '../policy/resolve-policy.ts';
import { HOST_NETWORKS } from '../testing/host-networks.ts';
import { ClientPolicies } from './client-policies.ts';
import { DnsForwarder } from './dns-forwarder.ts';
import { LengthFrames, frame } from './length-frames.ts';
import { listenForDns } from './dns-listeners.ts';
import { addressRecord, encodeAnswer, encodeQuery, TYPE } from '../testing/dns-samples.ts';
import { QUERY_LIMITS, type QueryLimits } from './query-semaphore.ts';
import { fixedResolvers, type Resolver } from './resolvers.ts';
import { startSampleResolver } from '../testing/sample-resolver.ts';

const NXDOMAIN = 3;
const SERVFAIL = 2;
const rcode = (message: Buffer | null) => (message?.readUInt16BE(2) ?? 0xf) & 0xf;
const addressIn = (message: Buffer | null) => message?.subarray(-4).join('.');

/** Waits for resolvers for longer than a busy machine stands still. */
const PATIENT_MS = 60_000;

function forwarderTo(...resolvers: readonly Resolver[]): DnsForwarder {
  return forwarderWith(resolvers);
}

function forwarderWith(
  resolvers: readonly Resolver[],
  given: { readonly timeoutMs?: number; readonly limits?: QueryLimits } = {},
): DnsForwarder {
  const policy = resolvePolicy({ dns: { query_timeout_ms: given.timeoutMs ?? PATIENT_MS } });
  return new DnsForwarder({
    resolvers: fixedResolvers(resolvers),
    clients: new ClientPolicies(HOST_NETWORKS, new Map(), new Set(), policy),
    pin: async () => await Promise.resolve(),
    ...(given.limits === undefined ? {} : { limits: given.limits }),
  });
}

async function resolver(t: TestContext, answer: Parameters<typeof startSampleResolver>[1]) {
  const started = await startSampleResolver('127.0.0.1', answer);
  t.after(() => started[Symbol.asyncDispose]());
  return started;
}

/** Answers names with `quick` in them at once, others on request. */
async function resolverThatHolds(t: TestContext) {
  const { promise: released, resolve: release } = Promise.withResolvers<void>();
  const upstream = await resolver(t, async (query) => {
    if (!query.includes('quick')) await released;
    return [encodeAnswer(query, [addressRecord('93.184.215.9')])];
  });
  return { upstream, release };
}

test('a question is answered over UDP and over TCP', async (t) => {
  const upstream = await resolver(t, (query) => [encodeAnswer(query, [addressRecord('93.184.215.9')])]);
  const listeners = await listenForDns(forwarderTo(upstream), ['127.0.0.1']);
  t.after(() => listeners[Symbol.asyncDispose]());

  const udp = createSocket('udp4');
  t.after(() => udp.close());
  udp.send(encodeQuery('example.com', { id: 7 }), listeners.port, '127.0.0.1');
  const [datagram] = (await once(udp, 'message')) as [Buffer];
  assert.equal(datagram.readUInt16BE(0), 7);
  assert.equal(addressIn(datagram), '93.184.215.9');

  const tcp = connect(listeners.port, '127.0.0.1');
  t.after(() => tcp.destroy());
  // Two questions, cut where it hurts most.
  const bytes = Buffer.concat([frame(encodeQuery('a.example.com')), frame(encodeQuery('b.example.com'))]);
  tcp.write(bytes.subarray(0, 1));
  tcp.write(bytes.subarray(1));
  const frames = new LengthFrames(65_535);
  const answers: Buffer[] = [];
  for await (const chunk of tcp) {
    answers.push(...(frames.push(chunk as Buffer) ?? []));
    if (answers.length === 2) break;
  }
  assert.deepEqual(answers.map(addressIn), ['93.184.215.9', '93.184.215.9']);
});

test('names that lead to private addresses do not exist', async (t) => {
  const upstream = await resolver(t, (query) => [encodeAnswer(query, [addressRecord('169.254.169.254')])]);
  const forwarder = forwarderTo(upstream);
  for (const transport of ['udp', 'tcp'] as const) {
    const answer = await forwarder.answer(encodeQuery('rebind.example'), '10.0.0.1', transport);
    assert.equal(rcode(answer), NXDOMAIN);
    assert.equal(answer?.readUInt16BE(6), 0, 'it holds no record');
  }
});

test('the next resolver is asked when one is silent or absent, and not when one says that there is no such name', async (t) => {
  const silent = await resolver(t, () => []);
  const absent = await startSampleResolver('127.0.0.1', () => []);
  await absent[Symbol.asyncDispose]();
  const good = await resolver(t, (query) => [encodeAnswer(query, [addressRecord('93.184.215.9')])]);
  const negative = await resolver(t, (query) => [encodeAnswer(query, [], { flags: 0x8183 })]);
  const ask = async (timeoutMs: number, ...resolvers: readonly Resolver[]) =>
    forwarderWith(resolvers, { timeoutMs }).answer(encodeQuery('example.com'), '10.0.0.1', 'udp');

  // Each has as much time, so a busy machine may keep even the good one from answering in time.
  let found: Buffer | null = null;
  for (const timeoutMs of [300, 3000, 15_000]) {
    found = await ask(timeoutMs, silent, absent, good);
    if (rcode(found) !== SERVFAIL) break;
  }
  assert.equal(addressIn(found), '93.184.215.9');
  assert.equal(rcode(await ask(60_000, negative, good)), NXDOMAIN);
  assert.equal(rcode(await ask(300, silent)), SERVFAIL);
  assert.equal(rcode(await ask(300)), SERVFAIL);
});

test('a forged datagram is passed over and the real answer is taken', async (t) => {
  const upstream = await resolver(t, (query) => {
    const forged = encodeAnswer(query, [addressRecord('93.184.216.66')]);
    forged.writeUInt16BE(query.readUInt16BE(0) ^ 1, 0);
    const other = encodeAnswer(encodeQuery('other.example', { id: query.readUInt16BE(0) }), []);
    return [forged, other, encodeAnswer(query, [addressRecord('93.184.215.9')])];
  });
  const answer = await forwarderTo(upstream).answer(encodeQuery('example.com'), '10.0.0.1', 'udp');
  assert.equal(addressIn(answer), '93.184.215.9');
});

test('every exchange has its own id and port', async (t) => {
  const upstream = await resolver(t, (query) => [encodeAnswer(query, [])]);
  const forwarder = forwarderTo(upstream);
  for (let n = 0; n < 20; n += 1) await forwarder.answer(encodeQuery('example.com'), '10.0.0.1', 'udp');
  assert.ok(new Set(upstream.seen.map(({ id }) => id)).size > 15);
  assert.ok(new Set(upstream.seen.map(({ port }) => port)).size > 15);
});

test('an answer that is longer than the client takes over UDP is truncated, and complete over TCP', async (t) => {
  const text = { type: TYPE.txt, data: Buffer.alloc(200, 1) };
  const upstream = await resolver(t, (query) => [encodeAnswer(query, [text, text, text])]);
  const forwarder = forwarderTo(upstream);
  const ask = (ednsBytes: number, transport: 'udp' | 'tcp') =>
    forwarder.answer(encodeQuery('example.com', { type: TYPE.txt, ednsBytes }), '10.0.0.1', transport);
  const isTruncated = (message: Buffer | null) => ((message?.readUInt16BE(2) ?? 0) & 0x0200) !== 0;
  assert.ok(isTruncated(await ask(0, 'udp')));
  assert.ok(!isTruncated(await ask(1232, 'udp')));
  const complete = await ask(0, 'tcp');
  assert.ok(!isTruncated(complete));
  assert.equal(complete?.readUInt16BE(6), 3);
});

test('a client that asks too much at once is told so, and others are still served', async (t) => {
  const { upstream, release } = await resolverThatHolds(t);
  const forwarder = forwarderTo(upstream);
  const held = Array.from({ length: QUERY_LIMITS.maxPendingPerClient }, () =>
    forwarder.answer(encodeQuery('slow.example'), '10.0.0.1', 'udp'),
  );
  assert.equal(rcode(await forwarder.answer(encodeQuery('quick.example'), '10.0.0.1', 'udp')), SERVFAIL);
  assert.ok(!upstream.seen.some(({ query }) => query.includes('quick')));
  assert.equal(
    addressIn(await forwarder.answer(encodeQuery('quick.example'), '10.0.0.2', 'udp')),
    '93.184.215.9',
  );
  release();
  await Promise.all(held);
  assert.equal(
    addressIn(await forwarder.answer(encodeQuery('quick.example'), '10.0.0.1', 'udp')),
    '93.184.215.9',
  );
});

test('many clients whose queries get no answer leave capacity for one more client', async (t) => {
  const { upstream, release } = await resolverThatHolds(t);
  const limits = { maxPending: 64, maxPendingPerClient: 16 };
  const forwarder = forwarderWith([upstream], { limits });
  const hostile = Array.from({ length: 40 }, (_, index) => `10.0.1.${index}`);
  const held = Array.from({ length: limits.maxPendingPerClient }).flatMap(() =>
    hostile.map((client) => forwarder.answer(encodeQuery('slow.example'), client, 'udp')),
  );
  const answers = await Promise.all(
    [1, 2].map(() => forwarder.answer(encodeQuery('quick.example'), '10.0.0.1', 'udp')),
  );
  assert.deepEqual(answers.map(addressIn), ['93.184.215.9', '93.184.215.9']);
  release();
  await Promise.all(held);
});

test('a client that sends questions without end over TCP waits for its turn, and another one does not', async (t) => {
  const count = 20_000;
  const upstream = await resolver(t, (query) => [encodeAnswer(query, [addressRecord('93.184.215.9')])]);
  let asked = 0;
  const listeners = await listenForDns(forwarderTo(upstream), ['127.0.0.1'], {
    onQuestion: () => (asked += 1),
  });
  t.after(() => listeners[Symbol.asyncDispose]());
  const flood = connect({ port: listeners.port, host: '127.0.0.1', localAddress: '127.0.0.2' });
  t.after(() => flood.destroy());
  flood.on('error', () => undefined).resume();
  const question = frame(encodeQuery('flood.example'));
  flood.write(Buffer.concat(Array.from({ length: count }, () => question)));
  await waitUntil(() => asked > 100);
  const quiet = connect({ port: listeners.port, host: '127.0.0.1' });
  t.after(() => quiet.destroy());
  quiet.write(frame(encodeQuery('quiet.example')));
  await once(quiet, 'data');
  // All of them would take a minute and a half.
  assert.ok(asked < count / 2, `${asked} were asked`);
});

test('queries and connections of a sandbox end with the sandbox, over UDP and TCP', async (t) => {
  const { upstream } = await resolverThatHolds(t);
  const forwarder = forwarderTo(upstream);
  const listeners = await listenForDns(forwarder, ['127.0.0.1']);
  t.after(() => listeners[Symbol.asyncDispose]());
  const over = (['udp', 'tcp'] as const).map((transport) =>
    forwarder.answer(encodeQuery('slow.example'), '127.0.0.1', transport),
  );
  const client = connect(listeners.port, '127.0.0.1').on('error', () => undefined);
  t.after(() => client.destroy());
  await once(client, 'connect');
  client.write(frame(encodeQuery('slow.example')));
  await waitUntil(() => upstream.connections === 2, 'both connections are at the resolver');
  const closed = once(client, 'close');
  forwarder.forget('127.0.0.1');
  listeners.forget('127.0.0.1');
  assert.deepEqual(await Promise.all(over), [null, null]);
  await closed;
  await waitUntil(() => upstream.connections === 0, 'nothing is asked for it any more');
});

test('a listener that was sent garbage answers the next question', async (t) => {
  const upstream = await resolver(t, (query) => [encodeAnswer(query, [addressRecord('93.184.215.9')])]);
  const listeners = await listenForDns(forwarderTo(upstream), ['127.0.0.1']);
  t.after(() => listeners[Symbol.asyncDispose]());
  const udp = createSocket('udp4');
  t.after(() => udp.close());
  await new Promise<void>((resolve) => udp.connect(listeners.port, '127.0.0.1', resolve));
  for (const bytes of fc.sample(fc.uint8Array({ minLength: 1, maxLength: 5000, size: 'max' }), 500))
    udp.send(bytes);
  const tcp = connect(listeners.port, '127.0.0.1');
  t.after(() => tcp.destroy());
  tcp.on('error', () => undefined);
  tcp.write(Buffer.alloc(8192, 0xff));
  await once(tcp, 'close');

  let answer: Buffer | null = null;
  udp.on('message', (message: Buffer) => {
    if (message.readUInt16BE(0) === 0xabcd && message.length > 12) answer = message;
  });
  // Asked again: behind so much garbage the kernel may have had no room for it.
  await waitUntil(() => {
    udp.send(encodeQuery('example.com', { id: 0xabcd }));
    return answer !== null;
  });
  assert.equal(addressIn(answer), '93.184.215.9');
});
