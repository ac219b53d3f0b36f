import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { test } from 'node:test';
import { DEFAULT_MAX_CONNECTIONS } from '@svc/contract/spec';
import { waitUntil } from '@svc/contract/testing';
import type { LinuxNetwork } from './linux-network.ts';
import { keptAs } from './network.suite.ts';
import type { Slot, SlotLink } from './network.ts';
import { command, inNamespace } from '../testing/command.ts';
import type { Internet } from '../testing/internet.ts';
import { probe, probeBriefly, type Attempt } from '../testing/probe.ts';
import { TestEngine } from '../testing/test-engine.ts';
import { withInternet } from '../testing/with-internet.ts';

const NXDOMAIN = 'rcode 3';
let internet: Internet;
let engine: TestEngine;
let network: LinuxNetwork;

withInternet(91, (connected) => {
  ({ internet, engine, network } = connected);
});

async function publicSlot(from = network): Promise<Slot & { readonly link: SlotLink }> {
  const slot = await from.acquire('public', AbortSignal.timeout(100_000));
  assert.ok(slot.link);
  return { ...slot, link: slot.link };
}

async function resolverPort(): Promise<number> {
  return Number(/dnat ip to [\d.]+:(\d+)/.exec(await engine.table())?.[1]);
}

const tcp = (host: string, port = 8080): Attempt => ({ kind: 'tcp', host, port });
const dns = (slot: Slot, name: string, transport: 'udp' | 'tcp' = 'udp'): Attempt => ({
  kind: 'dns',
  server: slot.link?.nameserver ?? '',
  name,
  transport,
});

test('a sandbox reaches public addresses, behind the address of the host, and its traffic is counted', async () => {
  const slot = await publicSlot();
  const start = network.traffic(slot);
  const [outcome] = await probe(slot.networkNamespace, tcp(internet.publicAddress));
  assert.equal(outcome, `you are ${internet.hostAddress}`);
  const { receivedBytes, sentBytes } = network.traffic(slot);
  assert.ok(sentBytes > start.sentBytes + 150 && receivedBytes > start.receivedBytes + 150);
  await network.release(slot.key);
  assert.deepEqual(network.traffic(slot), { receivedBytes: 0, sentBytes: 0 });
});

test('names are resolved over UDP and TCP, and long answers are asked for again over TCP', async () => {
  const slot = await publicSlot();
  assert.deepEqual(
    await probe(
      slot.networkNamespace,
      dns(slot, 'public.example'),
      dns(slot, 'public.example', 'tcp'),
      dns(slot, 'absent.example'),
      dns(slot, 'large.example'),
      dns(slot, 'large.example', 'tcp'),
    ),
    [internet.publicAddress, internet.publicAddress, NXDOMAIN, 'truncated', internet.publicAddress],
  );
});

test('a name that leads to a private address does not exist', async () => {
  const slot = await publicSlot();
  const outcomes = await probe(
    slot.networkNamespace,
    dns(slot, 'rebind.example'),
    dns(slot, 'rebind.example', 'tcp'),
  );
  assert.deepEqual(outcomes, [NXDOMAIN, NXDOMAIN]);
});

test('only sandboxes and the host itself get answers from the resolver', async () => {
  const slot = await publicSlot();
  const { gateway } = slot.link;
  const port = await resolverPort();
  const ask = (): Attempt => ({
    kind: 'dns',
    server: gateway,
    name: 'public.example',
    transport: 'udp',
    port,
  });
  assert.deepEqual(await probe('/proc/self/ns/net', ask()), [internet.publicAddress]);
  assert.deepEqual(await probeBriefly(internet.namespace, ask()), ['silence']);
  assert.deepEqual(await probeBriefly(slot.networkNamespace, ask()), ['silence'], 'on port 53 alone');
});

test('a sandbox reaches no service of the host on any of its addresses', async (t) => {
  const slot = await publicSlot();
  const server = createServer(
    (socket) => void socket.on('error', () => undefined).end('you are inside'),
  ).listen(0, '::');
  t.after(() => server.close());
  await once(server, 'listening');
  const { port } = server.address() as { port: number };
  // The listener is really there, for the host and for the outside.
  assert.deepEqual(await probe('/proc/self/ns/net', tcp('127.0.0.1', port), tcp(slot.link.gateway, port)), [
    'you are inside',
    'you are inside',
  ]);
  assert.deepEqual(await probe(internet.namespace, tcp(internet.hostAddress, port)), ['you are inside']);

  const outcomes = await probeBriefly(
    slot.networkNamespace,
    tcp(slot.link.gateway, port),
    tcp(internet.hostAddress, port),
    tcp('255.255.255.255', port),
    tcp(slot.link.gateway, await resolverPort()),
  );
  for (const outcome of outcomes) assert.match(outcome, /^(silence|EACCES|ENETUNREACH)$/);
  // 127.0.0.1 is the sandbox's own loopback, which has no listener.
  assert.deepEqual(await probe(slot.networkNamespace, tcp('127.0.0.1', port)), ['ECONNREFUSED']);
});

test('a sandbox reaches neither private nor metadata addresses that the host itself reaches', async () => {
  const slot = await publicSlot();
  const hidden = [tcp(internet.privateAddress), tcp(internet.metadataAddress)];
  for (const outcome of await probe('/proc/self/ns/net', ...hidden)) assert.match(outcome, /^you are/);
  assert.deepEqual(await probeBriefly(slot.networkNamespace, ...hidden), ['silence', 'silence']);
});

test('a sandbox is not reachable from another sandbox, the host or outside', async (t) => {
  const [target, other] = await Promise.all([publicSlot(), publicSlot()]);
  const line = inNamespace(
    target.networkNamespace,
    'busybox',
    'nc',
    '-ll',
    '-p',
    '9000',
    '-e',
    'echo',
    'you are inside',
  );
  const listener = spawn(line[0], line.slice(1), { stdio: 'ignore' });
  t.after(() => listener.kill('SIGKILL'));
  const attempt = tcp(target.link.address, 9000);
  await waitUntil(async () => (await probe(target.networkNamespace, attempt))[0] === 'you are inside');
  assert.deepEqual(await probeBriefly(other.networkNamespace, attempt), ['silence']);
  assert.match((await probeBriefly('/proc/self/ns/net', attempt))[0] ?? '', /^(silence|EPERM)$/);
  assert.deepEqual(await probeBriefly(internet.namespace, attempt), ['silence']);
});

test('packets with a forged source address are dropped', async () => {
  const [slot, other] = await Promise.all([publicSlot(), publicSlot()]);
  const inside = (...line: readonly string[]) => {
    const [program, ...parameters] = inNamespace(slot.networkNamespace, ...line);
    return command(program, ...parameters);
  };
  const sendFrom = (from: string, text: string): Attempt => ({
    kind: 'udp',
    host: internet.publicAddress,
    port: 9090,
    text,
    from,
  });
  const forged = [other.link.address, '198.51.100.250', internet.hostAddress];
  for (const address of forged) await inside('ip', 'address', 'add', `${address}/32`, 'dev', 'eth0');
  await probe(slot.networkNamespace, ...forged.map((address) => sendFrom(address, `forged ${address}`)));
  // What is sent later arrives later, so once it is here, the others would be.
  await waitUntil(async () => {
    await probe(slot.networkNamespace, sendFrom(slot.link.address, `honest ${slot.key}`));
    return internet.received.some((text) => text.startsWith(`honest ${slot.key}`));
  });
  assert.deepEqual(
    internet.received.filter((text) => text.startsWith('forged')),
    [],
  );
});

test('there is no IPv6, also when the guest and even the host turn it on', async (t) => {
  const slot = await publicSlot();
  const server = createServer(
    (socket) => void socket.on('error', () => undefined).end('you are inside'),
  ).listen(0, '::');
  t.after(() => server.close());
  await once(server, 'listening');
  const { port } = server.address() as { port: number };
  const attempts = [
    tcp(internet.ipv6Address),
    tcp(internet.hostIpv6Address, port),
    tcp('fe80::1%eth0', port),
  ];
  for (const outcome of await probe(slot.networkNamespace, ...attempts))
    assert.match(outcome, /^(ENETUNREACH|EINVAL|EADDRNOTAVAIL)$/);

  const host = slot.link.hostInterface;
  await command('sh', '-c', `echo 0 > /proc/sys/net/ipv6/conf/${host}/disable_ipv6`);
  await command('ip', '-6', 'address', 'add', 'fe80::1/64', 'dev', host, 'nodad');
  await command('ip', '-6', 'address', 'add', 'fd77::1/64', 'dev', host, 'nodad');
  const [program, ...parameters] = inNamespace(
    slot.networkNamespace,
    'sh',
    '-ec',
    `echo 0 > /proc/sys/net/ipv6/conf/eth0/disable_ipv6
     ip -6 address add fe80::2/64 dev eth0 nodad
     ip -6 address add fd77::2/64 dev eth0 nodad
     ip -6 route add default via fd77::1 dev eth0`,
  );
  await command(program, ...parameters);
  for (const outcome of await probeBriefly(slot.networkNamespace, ...attempts, tcp('fd77::1', port))) {
    assert.match(outcome, /^(silence|EHOSTUNREACH)$/);
  }
});

test('a sandbox with reach loopback has lo and nothing else', async () => {
  const slot = await network.acquire('loopback', AbortSignal.timeout(100_000));
  const [program, ...parameters] = inNamespace(slot.networkNamespace, 'cat', '/proc/net/dev');
  const names = (await command(program, ...parameters)).match(/^ *(\w+):/gm)?.map((name) => name.trim());
  assert.deepEqual(names, ['lo:']);
  assert.deepEqual(await probe(slot.networkNamespace, tcp(internet.publicAddress)), ['ENETUNREACH']);
});

test('a sandbox has at most so many connections at a time as answers say, and another one still gets through', async () => {
  const [greedy, other] = await Promise.all([publicSlot(), publicSlot()]);
  const many: Attempt = {
    kind: 'tcpMany',
    host: internet.publicAddress,
    port: 8080,
    count: 300,
    awaited: DEFAULT_MAX_CONNECTIONS,
  };
  const [count] = await probe(greedy.networkNamespace, many);
  assert.equal(count, String(DEFAULT_MAX_CONNECTIONS));
  assert.match((await probe(other.networkNamespace, tcp(internet.publicAddress)))[0] ?? '', /^you are/);
});

test('a sandbox that floods is limited, and another one is not affected', async () => {
  await using small = await TestEngine.make(95, {});
  const limited = small.open({ maxPackets: 100 });
  await limited.recover([]);
  const [greedy, other] = await Promise.all(
    [1, 2].map(() => limited.acquire('public', AbortSignal.timeout(100_000))),
  );
  assert.ok(greedy && other);
  const text = `flood ${randomBytes(4).toString('hex')}`;
  const heard = () => internet.received.filter((line) => line.startsWith(text)).length;
  const send: Attempt = { kind: 'udp', host: internet.publicAddress, port: 9090, text };
  const begun = performance.now();
  for (let round = 0; round < 4; round++)
    await probe(greedy.networkNamespace, ...Array.from({ length: 200 }, () => send));
  assert.match((await probe(other.networkNamespace, tcp(internet.publicAddress)))[0] ?? '', /^you are/);
  const elapsedMs = performance.now() - begun;
  await waitUntil(() => heard() > 0);
  // As many at once, and as many in each second that it lasted.
  assert.ok(heard() <= 100 + (100 * elapsedMs) / 1000 + 10, `${heard()} in ${elapsedMs} ms`);
  const table = await small.table();
  for (const set of ['sent', 'received'])
    assert.match(table, new RegExp(`@${set} .*limit rate over 100/second`));
});

test('a sandbox that floods the resolver is limited, and another one is answered meanwhile', async () => {
  const [greedy, other] = await Promise.all([publicSlot(), publicSlot()]);
  const count = 6000;
  const flood = probeBriefly(greedy.networkNamespace, {
    kind: 'dnsFlood',
    server: greedy.link.nameserver,
    count,
  });
  for (let n = 0; n < 5; n++)
    assert.deepEqual(await probe(other.networkNamespace, dns(other, 'public.example')), [
      internet.publicAddress,
    ]);
  const [answers = 0, elapsedMs = 0] = (await flood)[0]?.split(' ').map(Number) ?? [];
  // The burst, and the rate for as long as it lasted.
  assert.ok(answers > 0 && answers <= 400 + (200 * elapsedMs) / 1000 + 10, `${answers} in ${elapsedMs} ms`);
});

test('a network that the host becomes part of is out of reach for as long as it is one', async (t) => {
  const slot = await publicSlot();
  const reach = async () => (await probeBriefly(slot.networkNamespace, tcp(internet.publicAddress)))[0];
  await waitUntil(async () => (await reach())?.startsWith('you are') === true);
  const name = `d${randomBytes(3).toString('hex')}`;
  await command('ip', 'link', 'add', name, 'type', 'veth', 'peer', 'name', `${name}p`);
  t.after(() => command('ip', 'link', 'delete', name).catch(() => undefined));
  const last = Number(internet.publicAddress.split('.').at(-1));
  const neighbour = internet.publicAddress.replace(/\d+$/, String(last ^ 1));
  await command('ip', 'address', 'add', `${neighbour}/31`, 'dev', name);
  await command('ip', 'link', 'set', name, 'up');
  // The host itself still gets there, by a narrower route.
  assert.match((await probe('/proc/self/ns/net', tcp(internet.publicAddress)))[0] ?? '', /^you are/);
  await waitUntil(async () => (await reach()) === 'silence');
  await command('ip', 'link', 'delete', name);
  await waitUntil(async () => (await reach())?.startsWith('you are') === true);
});

test('an open connection outlives a recover, and a kept sandbox still reaches and resolves', async (t) => {
  const own = await TestEngine.make(90, { resolvers: [{ address: internet.resolver, port: 53 }] });
  t.after(() => own[Symbol.asyncDispose]());
  const first = own.open();
  await first.recover([]);
  const slot = await publicSlot(first);
  const line = inNamespace(slot.networkNamespace, 'busybox', 'nc', internet.publicAddress, '8080');
  const client = spawn(line[0], line.slice(1), { stdio: ['pipe', 'pipe', 'ignore'] });
  t.after(() => client.kill('SIGKILL'));
  await once(client.stdout, 'data');
  await first.close();
  const second = own.open();
  await second.recover([keptAs(slot.key)]);
  assert.deepEqual(
    await probe(slot.networkNamespace, tcp(internet.publicAddress), dns(slot, 'public.example')),
    [`you are ${internet.hostAddress}`, internet.publicAddress],
  );
  client.stdin.write('still there?\n');
  const [echo] = (await once(client.stdout, 'data', { signal: AbortSignal.timeout(60_000) })) as [Buffer];
  assert.equal(echo.toString(), 'still there?\n');
});

test('two engines side by side keep their sandboxes apart, and one closes without disturbing the other', async () => {
  const slot = await publicSlot();
  {
    await using neighbour = await TestEngine.make(90, {
      resolvers: [{ address: internet.resolver, port: 53 }],
    });
    const second = neighbour.open();
    await second.recover([]);
    const theirs = await publicSlot(second);
    assert.deepEqual(
      await probe(theirs.networkNamespace, tcp(internet.publicAddress), dns(theirs, 'public.example')),
      [`you are ${internet.hostAddress}`, internet.publicAddress],
    );
    const line = inNamespace(
      theirs.networkNamespace,
      'busybox',
      'nc',
      '-ll',
      '-p',
      '9000',
      '-e',
      'echo',
      'you are inside',
    );
    const listener = spawn(line[0], line.slice(1), { stdio: 'ignore' });
    const attempts = [tcp(theirs.link.address, 9000), tcp(theirs.link.gateway, 53)];
    try {
      await waitUntil(
        async () =>
          (await probe(theirs.networkNamespace, tcp(theirs.link.address, 9000)))[0] === 'you are inside',
      );
      assert.deepEqual(await probeBriefly(slot.networkNamespace, ...attempts), ['silence', 'silence']);
    } finally {
      listener.kill('SIGKILL');
    }
  }
  assert.deepEqual(await probe(slot.networkNamespace, dns(slot, 'public.example')), [internet.publicAddress]);
});
