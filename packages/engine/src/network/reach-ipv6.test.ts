import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { test } from 'node:test';
import { waitUntil } from '@svc/contract/testing';
import { resolvePolicy } from '../policy/resolve-policy.ts';
import { command, inNamespace } from '../testing/command.ts';
import type { Internet } from '../testing/internet.ts';
import { probe, probeBriefly, type Attempt } from '../testing/probe.ts';
import { networkOf, newProxyOf } from '../testing/proxy-process.ts';
import { TestEngine } from '../testing/test-engine.ts';
import { withInternet } from '../testing/with-internet.ts';
import type { LinuxNetwork } from './linux-network.ts';
import { keptAs } from './network.suite.ts';
import type { Slot, SlotLink } from './network.ts';

type Wired = Slot & { readonly link: SlotLink & { readonly ipv6: NonNullable<SlotLink['ipv6']> } };

const AAAA = 28;
let internet: Internet;
let engine: TestEngine;
let network: LinuxNetwork;
let slot: Wired;
let other: Wired;

withInternet(
  96,
  async (connected) => {
    ({ internet, engine, network } = connected);
    [slot, other] = await Promise.all([acquire(), acquire()]);
  },
  { ipv6Pool: 'auto' },
);

async function acquire(): Promise<Wired> {
  const found = await network.acquire('public', AbortSignal.timeout(100_000));
  assert.ok(found.link?.ipv6);
  return { ...found, link: { ...found.link, ipv6: found.link.ipv6 } };
}

const tcp = (host: string, port = 8080): Attempt => ({ kind: 'tcp', host, port });
const allowAll = resolvePolicy({ policy: { default_egress: 'allow', rules: [] } });
const DEFAULT = resolvePolicy(undefined);

async function inside(of: Slot, script: string): Promise<string> {
  const [program, ...parameters] = inNamespace(of.networkNamespace, 'sh', '-ec', script);
  return await command(program, ...parameters);
}

test('a sandbox reaches public IPv6 addresses, behind the address of the host, with one address and no other', async () => {
  assert.deepEqual(
    await probe(slot.networkNamespace, tcp(internet.publicIpv6Address), tcp(internet.publicAddress)),
    [`you are ${internet.hostIpv6Address}`, `you are ${internet.hostAddress}`],
  );
  const addresses = await inside(slot, 'ip -o -6 address show dev eth0');
  assert.deepEqual(addresses.match(/inet6 \S+/g), [`inet6 ${slot.link.ipv6.address}/128`]);
  assert.equal(await command('ip', '-o', '-6', 'address', 'show', 'dev', slot.link.hostInterface), '');
});

/** A server on this host that answers every connection. */
async function listenHere(): Promise<{ readonly port: number } & AsyncDisposable> {
  const server = createServer((socket) => void socket.on('error', () => undefined).end('you are inside'));
  server.listen(0, '::');
  await once(server, 'listening');
  const { port } = server.address() as { port: number };
  return {
    port,
    [Symbol.asyncDispose]: async () => {
      server.close();
      await once(server, 'close');
    },
  };
}

test('only public addresses are reached over IPv6: not this host, its networks, other sandboxes or link-local addresses', async () => {
  await using here = await listenHere();
  const { gateway } = slot.link.ipv6;
  const [metadata = '', translated = '', tunnelled = ''] = internet.closedIpv6Addresses;
  // All of them are there, for this host.
  for (const outcome of await probe(
    '/proc/self/ns/net',
    ...[metadata, translated, tunnelled].map((to) => tcp(to)),
  ))
    assert.match(outcome, /^you are/);
  const forbidden = [
    tcp(internet.hostIpv6Address, here.port),
    tcp(gateway, here.port),
    tcp(internet.ipv6Address),
    tcp(metadata),
    tcp(other.link.ipv6.address, here.port),
    tcp(translated),
    tcp(tunnelled),
    tcp(`::ffff:${internet.privateAddress}`),
    tcp('fe80::1%eth0', here.port),
  ];
  const closed = /^(silence|E(?:HOSTUNREACH|NETUNREACH|INVAL|ADDRNOTAVAIL))$/;
  for (const [index, outcome] of (await probeBriefly(slot.networkNamespace, ...forbidden)).entries())
    assert.match(outcome, closed, JSON.stringify(forbidden[index]));
  // What no rule opens: other sandboxes, and IPv4 in disguise. The rest is open to one that may go anywhere.
  await network.setPolicy(slot, allowAll);
  const outcomes = await probeBriefly(slot.networkNamespace, ...forbidden);
  assert.deepEqual(outcomes.slice(0, 2), ['you are inside', 'you are inside']);
  for (const index of [2, 3]) assert.match(outcomes[index] ?? '', /^you are/);
  for (const index of [4, 5, 6, 8])
    assert.match(outcomes[index] ?? '', closed, JSON.stringify(forbidden[index]));
  await network.setPolicy(slot, DEFAULT);
  assert.match((await probeBriefly(slot.networkNamespace, tcp(gateway, here.port)))[0] ?? '', closed);
});

test('nothing leaves a sandbox under an address that is not its own, and nothing that speaks for the link', async () => {
  const text = `forged6 ${engine.options.instance}`;
  const spare = slot.link.ipv6.address.replace(/:[^:]*$/, ':fffe');
  await inside(
    slot,
    `ip -6 address add ${other.link.ipv6.address}/128 dev eth0 nodad
     ip -6 address add ${spare}/128 dev eth0 nodad
     ip -6 address add fe80::7/64 dev eth0 nodad`,
  );
  await network.setPolicy(slot, allowAll);
  const from = (address: string) => ({
    kind: 'udp' as const,
    host: internet.publicIpv6Address,
    port: 9090,
    text,
    from: address,
  });
  await probe(slot.networkNamespace, from(other.link.ipv6.address), from(spare), from('fe80::7%eth0'));
  await probe(slot.networkNamespace, { ...from(slot.link.ipv6.address), text: `own ${text}` });
  await waitUntil(() => internet.received.some((line) => line.startsWith(`own ${text}`)));
  assert.deepEqual(
    internet.received.filter((line) => line.startsWith(text)),
    [],
  );

  // Router and neighbour advertisements, from its own address and from a forged one: counted behind our first chain.
  await using behind = await countBehind(slot.link.hostInterface);
  for (const source of [slot.link.ipv6.address, 'fe80::7'])
    await inside(slot, `/usr/bin/python3 -c '${ADVERTISE}' ${source} ff02::1 ${slot.link.ipv6.gateway}`);
  assert.deepEqual(await behind.types(), ['echo-request'], 'the control alone');
  assert.equal(await command('ip', '-6', 'route', 'show', 'default', 'dev', slot.link.hostInterface), '');
  await inside(
    slot,
    `for address in ${other.link.ipv6.address} ${spare} fe80::7; do ip -6 address flush to "$address" dev eth0; done`,
  );
  await network.setPolicy(slot, DEFAULT);
});

/** One echo request, by which it is known that packets get there, and everything of neighbour discovery and multicast groups. */
const ADVERTISE = `
import socket, struct, sys
source, group, gateway = sys.argv[1:]
for kind, to in [(128, gateway)] + [(kind, group) for kind in (130, 131, 132, 133, 134, 135, 136, 137, 143)]:
    raw = socket.socket(socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_ICMPV6)
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b"eth0")
    raw.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_HOPS, 255)
    raw.bind((source, 0, 0, socket.if_nametoindex("eth0")))
    try:
        raw.sendto(struct.pack("!BBH", kind, 0, 0) + bytes(20), (to, 0, 0, socket.if_nametoindex("eth0")))
    except OSError:
        pass`;

async function countBehind(
  hostInterface: string,
): Promise<AsyncDisposable & { types(): Promise<readonly string[]> }> {
  const table = `svctest6_${engine.options.instance}`;
  const chain = `chain behind { type filter hook prerouting priority raw + 1; policy accept; iifname "${hostInterface}" meta l4proto ipv6-icmp add @seen { icmpv6 type }; }`;
  await command(
    'nft',
    `table inet ${table} { set seen { type icmpv6_type; flags dynamic; size 64; }; ${chain}; }`,
  );
  return {
    types: async () => {
      const found =
        /elements = \{([^}]*)\}/.exec(await command('nft', 'list', 'set', 'inet', table, 'seen'))?.[1] ?? '';
      return found.split(',').map((each) => each.trim());
    },
    [Symbol.asyncDispose]: async () => void (await command('nft', 'delete', 'table', 'inet', table)),
  };
}

test('rules about names know their IPv6 addresses, and lead to the proxy over both families', async () => {
  const rule = { direction: 'egress', action: 'allow', destination: { domain: 'dual.example' } } as const;
  await network.setPolicy(other, resolvePolicy({ policy: { default_egress: 'deny', rules: [rule] } }));
  const reach = tcp(internet.publicIpv6Address);
  assert.deepEqual(
    await probeBriefly(other.networkNamespace, reach),
    ['silence'],
    'the name was not resolved yet',
  );
  const ask = (server: string, name = 'dual.example'): Attempt => ({
    kind: 'dns',
    server,
    name,
    transport: 'udp',
    type: AAAA,
  });
  // Queries to any server, over both families, are answered by our resolver.
  const [own, foreign, denied] = await probe(
    other.networkNamespace,
    ask(other.link.nameserver),
    ask('2001:4860:4860::8888'),
    ask('2001:4860:4860::8888', 'public.example'),
  );
  assert.deepEqual([own, foreign, denied], ['0.0.0.1', '0.0.0.1', 'rcode 3']);
  assert.deepEqual(await probe(other.networkNamespace, reach), [`you are ${internet.hostIpv6Address}`]);
  const { known } = await network.decisionContext(other);
  assert.deepEqual(
    known.map(({ address }) => address.family),
    [6],
  );
  assert.match(await engine.table(), /tproxy ip6 to/);
});

test('a proxy reaches IPv6 addresses that are open to sandboxes, and no sandbox', async () => {
  const rule = { direction: 'egress', action: 'allow', destination: { domain: 'dual.example' } } as const;
  await network.setPolicy(other, resolvePolicy({ policy: { default_egress: 'deny', rules: [rule] } }));
  const proxy = networkOf(await newProxyOf(engine, null));
  // The address of metadata is closed by a ceiling alone.
  const [, ...embedding] = internet.closedIpv6Addresses;
  const closed = [...embedding, other.link.ipv6.address].map((host) => tcp(host));
  assert.deepEqual(await probeBriefly(proxy, tcp(internet.publicIpv6Address), ...closed), [
    `you are ${internet.hostIpv6Address}`,
    ...embedding.map(() => 'ECONNREFUSED'),
    'silence',
  ]);
});

test('a denial over IPv6 is reported with its address', async () => {
  const lines: string[] = [];
  network.onReport = (key, { decisions }) => {
    if (key !== other.key) return;
    for (const { decision } of decisions)
      lines.push(`${decision.kind} ${decision.address} ${decision.port} ${decision.decidedBy}`);
  };
  await network.setPolicy(other, resolvePolicy({ policy: { default_egress: 'deny', rules: [] } }));
  assert.deepEqual(await probeBriefly(other.networkNamespace, tcp(internet.publicIpv6Address)), ['silence']);
  await network.denials.look();
  const parts = internet.publicIpv6Address.split('::')[0];
  assert.ok(
    lines.some((line) => line.startsWith(`tcp ${parts}`) && line.endsWith(' 8080 default')),
    lines.join(),
  );
});

const MIB = 2 ** 20;
const DATAGRAM_BYTES = 30_000;
/** Thirty megabytes at once. */
const PUSH = `
import socket, sys
pushing = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
for _ in range(1000):
    pushing.sendto(sys.argv[2].encode().ljust(${DATAGRAM_BYTES}, b"."), (sys.argv[1], 9090))`;
/** Answers the first datagram that comes to port 9191 with as much. */
const POUR = `
import socket, sys
pouring = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
pouring.bind((sys.argv[1], 9191))
print("ready", flush=True)
_, peer = pouring.recvfrom(100)
for _ in range(1000):
    pouring.sendto(bytes(${DATAGRAM_BYTES}), peer)`;
/** Asks for them, and tells how many came before there was silence. */
const DRINK = `
import socket, sys
drinking = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
drinking.setsockopt(socket.SOL_SOCKET, 33, 64 << 20) # SO_RCVBUFFORCE
drinking.sendto(b"go", (sys.argv[1], 9191))
drinking.settimeout(20)
count = 0
try:
    while True:
        drinking.recv(${DATAGRAM_BYTES})
        count += 1
        drinking.settimeout(2)
except TimeoutError:
    print(count)`;

test('a sandbox sends and receives no more bytes than the operator allows, over both families', async () => {
  await using small = await TestEngine.make(97, { ipv6Pool: 'auto' });
  const limited = small.open({ maxMib: 1 });
  await limited.recover([]);
  const greedy = await limited.acquire('public', AbortSignal.timeout(100_000));
  const python = async (script: string, ...words: readonly string[]) => {
    const line = inNamespace(greedy.networkNamespace, '/usr/bin/python3', '-c', script, ...words);
    return await command(line[0], ...line.slice(1));
  };
  // The kernel's bucket holds the bytes of one second and the burst, which is one more.
  const most = (elapsedMs: number) => (2 * MIB + (MIB * elapsedMs) / 1000) / DATAGRAM_BYTES + 10;
  const text = `bytes ${randomBytes(4).toString('hex')} `;
  const heard = () => internet.received.filter((line) => line.startsWith(text)).length;
  const begun = performance.now();
  await python(PUSH, internet.publicIpv6Address, text);
  await waitUntil(() => heard() > 0);
  assert.ok(heard() <= most(performance.now() - begun), `${heard()} of 1000 were let out`);

  const [program, ...parameters] = inNamespace(
    internet.namespace,
    '/usr/bin/python3',
    '-c',
    POUR,
    internet.publicAddress,
  );
  const pouring = spawn(program, parameters, { stdio: ['ignore', 'pipe', 'inherit'] });
  await once(pouring.stdout, 'data');
  const asked = performance.now();
  const received = Number(await python(DRINK, internet.publicAddress));
  assert.ok(received > 0 && received <= most(performance.now() - asked), `${received} of 1000 came in`);
});

test('a sandbox keeps its IPv6 over a restart of the engine, and nothing is left when the last is gone', async () => {
  await network.close();
  network = engine.open();
  await network.recover([keptAs(slot.key)]);
  assert.deepEqual(await probe(slot.networkNamespace, tcp(internet.publicIpv6Address)), [
    `you are ${internet.hostIpv6Address}`,
  ]);
  await network.release(slot.key);
  await network.close();
  assert.deepEqual(await engine.traces(), []);
  const host = await command('sh', '-c', 'ip -6 address show dev lo; ip -6 rule; ip -6 route show table all');
  assert.ok(!host.includes(slot.link.ipv6.gateway), host);
  assert.ok(
    !host.includes(String(0x5c000000 + (Number.parseInt(engine.options.instance, 16) & 0xffffff))),
    host,
  );
});
