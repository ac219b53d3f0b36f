import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { test, type TestContext } from 'node:test';
import type { Network } from '@svc/contract';
import { formatAddress } from '../policy/address.ts';
import { startSampleResolver } from '../testing/sample-resolver.ts';
import { resolvePolicy } from '../policy/resolve-policy.ts';
import type { LinuxNetwork } from './linux-network.ts';
import { keptAs } from './network.suite.ts';
import type { Slot, SlotLink } from './network.ts';
import { inNamespace } from '../testing/command.ts';
import type { Internet } from '../testing/internet.ts';
import { addressRecord, encodeAnswer } from '../testing/dns-samples.ts';
import { probe, probeBriefly, type Attempt } from '../testing/probe.ts';
import { TestEngine } from '../testing/test-engine.ts';
import { withInternet } from '../testing/with-internet.ts';
import { waitUntil } from '@svc/contract/testing';

const NXDOMAIN = 'rcode 3';
let internet: Internet;
let network: LinuxNetwork;

withInternet(93, (connected) => {
  ({ internet, network } = connected);
});

type Policy = NonNullable<Network['policy']>;
type Rule = NonNullable<Policy['rules']>[number];

async function slotWith(given: Network, from = network): Promise<Slot & { readonly link: SlotLink }> {
  const slot = await from.acquire('public', AbortSignal.timeout(100_000));
  assert.ok(slot.link);
  await from.setPolicy(slot, resolvePolicy(given));
  return { ...slot, link: slot.link };
}

const allow = (destination: Rule['destination'], more: Partial<Rule> = {}): Rule => ({
  direction: 'egress',
  action: 'allow',
  destination,
  ...more,
});
const deny = (destination: Rule['destination'], more: Partial<Rule> = {}): Rule => ({
  ...allow(destination, more),
  action: 'deny',
});
const rules = (...list: Rule[]): Network => ({ policy: { rules: list } });

const tcp = (host: string, port = 8080): Attempt => ({ kind: 'tcp', host, port });
const dns = (slot: Slot, name: string, transport: 'udp' | 'tcp' = 'udp'): Attempt => ({
  kind: 'dns',
  server: slot.link?.nameserver ?? '',
  name,
  transport,
});

/** A client inside that has a connection to the address and can say something over it. */
async function connected(t: TestContext, slot: Slot, address: string) {
  const line = inNamespace(slot.networkNamespace, 'busybox', 'nc', address, '8080');
  const client = spawn(line[0], line.slice(1), { stdio: ['pipe', 'pipe', 'ignore'] });
  t.after(() => client.kill('SIGKILL'));
  let heard = '';
  client.stdout.on('data', (data: Buffer) => (heard += data.toString()));
  await waitUntil(() => heard.includes('you are'));
  return {
    say: (text: string) => client.stdin.write(`${text}\n`),
    hears: (text: string) => waitUntil(() => heard.includes(text)),
    heard: () => heard,
  };
}

test('rules open and close ranges, groups and ports, the first that fits decides', async () => {
  const { publicAddress, privateAddress, metadataAddress, hostAddress } = internet;
  const opened = await slotWith(
    rules(
      deny(
        { cidr: `${publicAddress}/32` },
        {
          ports: [
            { start: 1, end: 8079 },
            { start: 8081, end: 65_535 },
          ],
        },
      ),
      allow({ group: 'public' }, { protocols: ['tcp'] }),
      allow({ cidr: `${privateAddress}/32` }, { ports: [{ start: 8080, end: 8080 }] }),
    ),
  );
  assert.deepEqual(await probe(opened.networkNamespace, tcp(publicAddress), tcp(privateAddress)), [
    `you are ${hostAddress}`,
    `you are ${hostAddress}`,
  ]);
  assert.deepEqual(
    await probeBriefly(opened.networkNamespace, tcp(metadataAddress), tcp(publicAddress, 8081)),
    ['silence', 'silence'],
  );
  const metadata = await slotWith(rules(allow({ group: 'metadata' })));
  assert.match((await probe(metadata.networkNamespace, tcp(metadataAddress)))[0] ?? '', /^you are/);
  assert.deepEqual(await probeBriefly(metadata.networkNamespace, tcp(publicAddress), tcp(privateAddress)), [
    'silence',
    'silence',
  ]);
});

test('allow by default opens everything but other sandboxes; deny everything keeps the link and answers no name', async () => {
  const open = await slotWith({ policy: { default_egress: 'allow' } });
  const closed = await slotWith({ policy: {} });
  const { publicAddress, privateAddress, metadataAddress } = internet;
  const all = [tcp(publicAddress), tcp(privateAddress), tcp(metadataAddress)];
  for (const outcome of await probe(open.networkNamespace, ...all)) assert.match(outcome, /^you are/);
  assert.deepEqual(
    await probeBriefly(closed.networkNamespace, ...all),
    all.map(() => 'silence'),
  );
  assert.deepEqual(await probe(closed.networkNamespace, dns(closed, 'public.example')), [NXDOMAIN]);
  assert.deepEqual(await probeBriefly(open.networkNamespace, tcp(closed.link.address)), ['silence']);
});

test('a service of the host is reached where a rule says so, on the port it says', async (t) => {
  const server = createServer(
    (socket) => void socket.on('error', () => undefined).end('you are inside'),
  ).listen(0);
  t.after(() => server.close());
  await once(server, 'listening');
  const { port } = server.address() as { port: number };
  const slot = await slotWith(rules(allow({ group: 'host' }, { ports: [{ start: port, end: port }] })));
  const other = await slotWith(rules(allow({ group: 'private' }), allow({ group: 'public' })));
  const attempt = tcp(slot.link.gateway, port);
  assert.deepEqual(await probe(slot.networkNamespace, attempt), ['you are inside']);
  assert.deepEqual(await probeBriefly(slot.networkNamespace, tcp(slot.link.gateway, port + 1)), ['silence']);
  assert.deepEqual(await probeBriefly(other.networkNamespace, attempt, tcp(internet.hostAddress, port)), [
    'silence',
    'silence',
  ]);
});

test('a rule about a name opens the addresses it leads to, to the sandbox that asked, and no others', async () => {
  const named = rules(allow({ domain: 'public.example' }, { ports: [{ start: 8080, end: 9090 }] }));
  const [slot, other] = await Promise.all([slotWith(named), slotWith(named)]);
  const attempt = tcp(internet.publicAddress);
  assert.deepEqual(
    await probeBriefly(slot.networkNamespace, attempt),
    ['silence'],
    'an address it was not led to',
  );
  assert.deepEqual(await probe(slot.networkNamespace, dns(slot, 'public.EXAMPLE')), [internet.publicAddress]);
  assert.deepEqual(await probe(slot.networkNamespace, attempt), [`you are ${internet.hostAddress}`]);
  assert.deepEqual(await probeBriefly(other.networkNamespace, attempt), ['silence']);
  await waitUntil(async () => {
    const datagram = {
      kind: 'udp',
      host: internet.publicAddress,
      port: 9090,
      text: `by name ${slot.key}`,
    } as const;
    await probe(slot.networkNamespace, datagram);
    return internet.received.some((text) => text.startsWith(`by name ${slot.key}`));
  });
});

test('a rule about a name for who reaches in takes nothing from one for what is reached', async () => {
  const incoming = allow({ domain_suffix: 'example' }, { direction: 'ingress' });
  const slot = await slotWith(rules(allow({ domain: 'public.example' }), incoming));
  assert.deepEqual(await probe(slot.networkNamespace, dns(slot, 'public.example')), [internet.publicAddress]);
  assert.match((await probe(slot.networkNamespace, tcp(internet.publicAddress)))[0] ?? '', /^you are/);
  await network.setPolicy(slot, resolvePolicy(rules(incoming, allow({ domain_suffix: 'example' }))));
  assert.match((await probe(slot.networkNamespace, tcp(internet.publicAddress)))[0] ?? '', /^you are/);
});

test('a name that no rule allows is not asked for, over UDP or TCP, at the gateway or anywhere else', async () => {
  const slot = await slotWith(rules(allow({ domain_suffix: 'example' }), allow({ group: 'public' })));
  const name = `secret-${slot.key}.public.test`;
  const elsewhere: Attempt = { kind: 'dns', server: internet.publicAddress, name, transport: 'udp' };
  const attempts = [dns(slot, name), dns(slot, name, 'tcp'), elsewhere];
  assert.deepEqual(await probe(slot.networkNamespace, ...attempts), [NXDOMAIN, NXDOMAIN, NXDOMAIN]);
  assert.deepEqual(await probe(slot.networkNamespace, dns(slot, `${slot.key}.public.example`)), [
    internet.publicAddress,
  ]);
  // What is asked later arrives later, so once it is here, the others would be.
  await waitUntil(() => internet.received.some((text) => text.includes(`asked for ${slot.key}`)));
  assert.ok(!internet.received.some((text) => text.includes('secret-')));
});

test('names may lead to private addresses where a rule about addresses allows them, or without rebind protection', async () => {
  const dnsRule = allow({ group: 'host' }, { ports: [{ start: 53, end: 53 }] });
  const guarded = await slotWith(rules(dnsRule, allow('any')));
  const meant = await slotWith(rules(dnsRule, allow({ cidr: '10.77.0.0/16' })));
  const careless = await slotWith({ ...rules(dnsRule), dns: { rebind_protection: false } });
  const ask = async (slot: Slot) => (await probe(slot.networkNamespace, dns(slot, 'rebind.example')))[0];
  assert.deepEqual(
    [await ask(guarded), await ask(meant), await ask(careless)],
    [NXDOMAIN, internet.privateAddress, internet.privateAddress],
  );
});

test('a sandbox can have its own resolvers and query timeout', async () => {
  const silent = await slotWith({
    dns: { nameservers: [`${internet.publicAddress}:9`], query_timeout_ms: 50 },
  });
  const own = await slotWith({
    policy: { default_egress: 'allow' },
    dns: { nameservers: ['127.0.0.1:1', internet.resolver] },
  });
  assert.deepEqual(await probeBriefly(silent.networkNamespace, dns(silent, 'public.example')), ['rcode 2']);
  assert.deepEqual(await probe(own.networkNamespace, dns(own, 'public.example')), [internet.publicAddress]);
});

test('nameservers are asked only where the policy lets the sandbox go, and never on the loopback of the host', async (t) => {
  const heard: string[] = [];
  const listen = async (address: string) => {
    const resolver = await startSampleResolver(address, (query, transport) => {
      heard.push(`${address} ${transport}`);
      return [encodeAnswer(query, [addressRecord(internet.publicAddress)])];
    });
    t.after(() => resolver[Symbol.asyncDispose]());
    return `${address}:${resolver.port}`;
  };
  const { hostAddress } = internet;
  const [loopback, host] = await Promise.all(['127.0.0.1', hostAddress].map(listen));
  const answers = async (nameserver: string | undefined, given: Network) => {
    const slot = await slotWith({ ...given, dns: { nameservers: [nameserver ?? ''] } });
    const questions = (['udp', 'tcp'] as const).map((way) => dns(slot, 'public.example', way));
    return await probe(slot.networkNamespace, ...questions);
  };
  const closed = ['rcode 2', 'rcode 2'];
  for (const given of [{}, { policy: { default_egress: 'allow' } }, rules(allow('any'))] as const)
    assert.deepEqual(await answers(loopback, given), closed);
  assert.deepEqual(await answers(host, {}), closed);
  assert.deepEqual(await answers(internet.resolver, {}), closed);
  assert.deepEqual(heard, []);
  const dnsRule = allow({ group: 'host' }, { ports: [{ start: 53, end: 53 }] });
  const opened = rules(dnsRule, allow({ group: 'host' }, { protocols: ['tcp'] }));
  assert.deepEqual(await answers(host, opened), ['rcode 2', internet.publicAddress]);
  assert.deepEqual([...new Set(heard)], [`${hostAddress} tcp`]);
});

test('a changed policy holds at once, also for connections that exist, and leaves allowed ones alone', async (t) => {
  const { publicAddress, privateAddress } = internet;
  const slot = await slotWith({ policy: { default_egress: 'allow' } });
  const [kept, cut] = await Promise.all([
    connected(t, slot, publicAddress),
    connected(t, slot, privateAddress),
  ]);
  await network.setPolicy(slot, resolvePolicy(rules(allow({ group: 'public' }))));
  kept.say('still here');
  cut.say('never heard');
  await kept.hears('still here');
  assert.deepEqual(await probeBriefly(slot.networkNamespace, tcp(privateAddress)), ['silence']);
  assert.ok(!cut.heard().includes('never heard'));
  await network.setPolicy(slot, resolvePolicy({ policy: { default_egress: 'allow' } }));
  assert.match((await probe(slot.networkNamespace, tcp(privateAddress)))[0] ?? '', /^you are/);
});

test('a ceiling holds under every policy, and one that is lowered at a restart cuts what goes on', async (t) => {
  const { publicAddress, privateAddress } = internet;
  const engine = await TestEngine.make(96);
  t.after(() => engine[Symbol.asyncDispose]());
  const first = engine.open({ resolvers: [{ address: internet.resolver, port: 53 }] });
  await first.recover([]);
  const policy = { policy: { default_egress: 'allow' as const } };
  const slot = await slotWith(policy, first);
  const cut = await connected(t, slot, privateAddress);
  const kept = await connected(t, slot, publicAddress);
  await first.close();
  const ceiling = { groups: ['public' as const], ranges: [] };
  const lowered = engine.open({ resolvers: [{ address: internet.resolver, port: 53 }], ceiling });
  await lowered.recover([keptAs(slot.key, resolvePolicy(policy))]);
  cut.say('never heard');
  kept.say('still here');
  await kept.hears('still here');
  const seen = async (from: Slot) =>
    await probeBriefly(from.networkNamespace, tcp(privateAddress), tcp(publicAddress));
  const [closed, open = ''] = await seen(slot);
  assert.deepEqual([closed, cut.heard().includes('never heard')], ['silence', false]);
  assert.match(open, /^you are/);
  const plain = await slotWith({}, lowered);
  assert.match((await seen(plain))[1] ?? '', /^you are/);
  await lowered.release(slot.key);
  await lowered.close();
  const lowest = engine.open({
    resolvers: [{ address: internet.resolver, port: 53 }],
    ceiling: { groups: [], ranges: [] },
  });
  await lowest.recover([keptAs(plain.key, resolvePolicy({}))]);
  assert.deepEqual(await seen(plain), ['silence', 'silence']);
});

test('resolved addresses of a sandbox stay valid under a new policy', async () => {
  const slot = await slotWith(rules(allow({ domain: 'public.example' })));
  assert.deepEqual(await probe(slot.networkNamespace, dns(slot, 'public.example')), [internet.publicAddress]);
  const suffix = rules(deny({ domain: 'other.example' }), allow({ domain_suffix: 'example' }));
  await network.setPolicy(slot, resolvePolicy(suffix));
  assert.match((await probe(slot.networkNamespace, tcp(internet.publicAddress)))[0] ?? '', /^you are/);
});

test('the resolved addresses of a sandbox are listed until they expire', async () => {
  const slot = await slotWith(rules(allow({ domain: 'public.example' })));
  assert.deepEqual((await network.decisionContext(slot)).known, []);
  await probe(slot.networkNamespace, dns(slot, 'public.example'));
  const { known } = await network.decisionContext(slot);
  assert.deepEqual(
    known.map(({ name, address }) => [name, formatAddress(address)]),
    [['public.example', internet.publicAddress]],
  );
  assert.deepEqual((await network.decisionContext(null)).known, []);
});

test('ping reaches what a rule about ICMP allows, and rules with ports are not about it', async () => {
  const peer = { cidr: `${internet.publicAddress}/32` };
  const [icmp, ports, denied] = await Promise.all([
    slotWith(rules(allow(peer, { protocols: ['icmpv4'] }))),
    slotWith(rules(allow(peer, { ports: [{ start: 1, end: 65_535 }] }))),
    slotWith(rules(deny(peer, { protocols: ['icmpv4'] }), allow(peer))),
  ]);
  await waitUntil(() => isPinged(icmp));
  assert.deepEqual(await probeBriefly(icmp.networkNamespace, tcp(internet.publicAddress)), ['silence']);
  assert.deepEqual([await isPinged(ports), await isPinged(denied)], [false, false]);
  assert.match((await probe(denied.networkNamespace, tcp(internet.publicAddress)))[0] ?? '', /^you are/);
});

async function isPinged(slot: Slot): Promise<boolean> {
  const [program, ...words] = inNamespace(slot.networkNamespace, 'busybox', 'ping', '-c', '1', '-w', '2');
  const ping = spawn(program ?? '', [...words, internet.publicAddress], { stdio: 'ignore' });
  const [code] = (await once(ping, 'exit')) as [number | null];
  return code === 0;
}

test('a sandbox has no more open connections than its limit', async () => {
  const slot = await slotWith({ max_connections: 5 });
  const many = { kind: 'tcpMany', host: internet.publicAddress, port: 8080, count: 12, awaited: 5 } as const;
  assert.deepEqual(await probe(slot.networkNamespace, many), ['5']);
});

test('a sandbox has no more UDP connections than its limit', async () => {
  const slot = await slotWith({ max_connections: 20, max_udp_connections: 2 });
  const open = await slotWith({});
  const send = (text: string): Attempt => ({ kind: 'udp', host: internet.publicAddress, port: 9090, text });
  await probe(slot.networkNamespace, ...Array.from({ length: 6 }, (_, index) => send(`bounded ${index}`)));
  assert.match((await probe(slot.networkNamespace, tcp(internet.publicAddress)))[0] ?? '', /^you are/);
  // Datagrams arrive in their order, so that nothing comes behind this one.
  await probe(open.networkNamespace, send('the last one'));
  await waitUntil(() => internet.received.some((line) => line.startsWith('the last one')));
  assert.equal(internet.received.filter((line) => line.startsWith('bounded')).length, 2);
});

test('a policy outlives the engine, and nothing of it outlives the slot', async (t) => {
  const own = await TestEngine.make(94, { resolvers: [{ address: internet.resolver, port: 53 }] });
  t.after(() => own[Symbol.asyncDispose]());
  const first = own.open();
  await first.recover([]);
  const given = rules(allow({ cidr: `${internet.privateAddress}/32` }), allow({ domain: 'public.example' }));
  const slot = await slotWith(given, first);
  assert.deepEqual(await probe(slot.networkNamespace, dns(slot, 'public.example')), [internet.publicAddress]);
  await first.close();
  const second = own.open();
  await second.recover([keptAs(slot.key, resolvePolicy(given))]);
  assert.match((await probe(slot.networkNamespace, tcp(internet.privateAddress)))[0] ?? '', /^you are/);
  assert.deepEqual(await probe(slot.networkNamespace, dns(slot, 'absent.other')), [NXDOMAIN]);
  assert.deepEqual(await probe(slot.networkNamespace, dns(slot, 'public.example')), [internet.publicAddress]);
  assert.match((await probe(slot.networkNamespace, tcp(internet.publicAddress)))[0] ?? '', /^you are/);
  assert.match(await own.table(), new RegExp(`p_${slot.key}`));
  await second.release(slot.key);
  assert.doesNotMatch(await own.table(), new RegExp(slot.key));
});

test('other ways to resolve names are closed under every policy', async () => {
  const slot = await slotWith({ policy: { default_egress: 'allow' } });
  const send = (port: number, text: string): Attempt => ({
    kind: 'udp',
    host: internet.publicAddress,
    port,
    text,
  });
  assert.deepEqual(await probeBriefly(slot.networkNamespace, tcp(internet.publicAddress, 853)), ['silence']);
  // No listener there: without the packet filter it would be refused, not silent.
  assert.deepEqual(await probe(slot.networkNamespace, tcp(internet.publicAddress, 854)), ['ECONNREFUSED']);
  await probe(slot.networkNamespace, send(5353, 'mdns'));
});
