import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { randomBytes } from 'node:crypto';
import { networkInterfaces } from 'node:os';
import { test } from 'node:test';
import type { NetworkPolicy } from '@svc/contract';
import fc from 'fast-check';
import { addressPolicies, IPV6_PEERS, PEERS } from '../testing/random-policies.ts';
import { referenceAction, type Place } from '../testing/reference-model.ts';
import { formatAddress, parseAddress } from '../policy/address.ts';
import { ceilingsOf } from '../policy/ceiling.ts';
import { resolvePolicy } from '../policy/resolve-policy.ts';
import { command, inNamespace } from '../testing/command.ts';
import { probe } from '../testing/probe.ts';
import { TestEngine } from '../testing/test-engine.ts';
import { loadRuleset } from './nft.ts';

const POLICIES = 12;
const ICMP_NAMES: Readonly<Record<string, string>> = { icmp: 'icmpv4', 'ipv6-icmp': 'icmpv6' };
const PORTS = [22, 80, 443, 8080, 65_535];

/** Sends an echo request to each address, without an answer. The kernel fills in the checksum only for IPv6. */
const ECHO = `
import socket, sys
for address in sys.argv[1:]:
    v6 = ":" in address
    family, protocol = (socket.AF_INET6, socket.IPPROTO_ICMPV6) if v6 else (socket.AF_INET, socket.IPPROTO_ICMP)
    sender = socket.socket(family, socket.SOCK_RAW, protocol)
    try:
        sender.sendto((b"\\x80" + bytes(7) if v6 else b"\\x08\\x00\\xf7\\xff" + bytes(4)), (address, 0))
    except OSError:
        pass`;

/** Counts the packets that our rules let through, before the rules of other programs, and drops them. */
async function watchBehind(
  hostInterface: string,
): Promise<AsyncDisposable & { seen(): Promise<ReadonlySet<string>> }> {
  const table = `inet svctest_${randomBytes(4).toString('hex')}`;
  await loadRuleset(`
    table ${table} {
      set seen { type inet_proto . ipv4_addr . inet_service; flags dynamic; size 65535; }
      set seen6 { type inet_proto . ipv6_addr . inet_service; flags dynamic; size 65535; }
      chain behind {
        type filter hook prerouting priority mangle + 1; policy accept;
        iifname != "${hostInterface}" return
        meta nfproto ipv6 meta l4proto { tcp, udp } add @seen6 { meta l4proto . ip6 daddr . th dport }
        icmpv6 type echo-request add @seen6 { meta l4proto . ip6 daddr . 0 }
        meta nfproto ipv4 meta l4proto { tcp, udp } add @seen { ip protocol . ip daddr . th dport }
        icmp type echo-request add @seen { ip protocol . ip daddr . 0 }
        drop
      }
    }
  `);
  return {
    seen: async () => {
      let text = '';
      for (const name of ['seen', 'seen6']) {
        text += await command('nft', 'list', 'set', ...table.split(' '), name);
        await command('nft', 'flush', 'set', ...table.split(' '), name);
      }
      return new Set(
        [...text.matchAll(/(tcp|udp|icmp|ipv6-icmp) \. ([\da-f.:]+) \. (\d+)/g)].map(
          ([, protocol = '', address = '', port]) =>
            `${ICMP_NAMES[protocol] ?? protocol} ${writtenOut(address)} ${port}`,
        ),
      );
    },
    [Symbol.asyncDispose]: async () => void (await command('nft', 'delete', 'table', ...table.split(' '))),
  };
}

test('for random policies and ceilings the packet filter decides as the reference model, for every kind of address', async () => {
  await using engine = await TestEngine.make(95, { ipv6Pool: 'auto' });
  const network = engine.open();
  await network.recover([]);
  const slot = await network.acquire('public', AbortSignal.timeout(100_000));
  assert.ok(slot.link?.ipv6);
  const { ipv6 } = slot.link;
  await using behind = await watchBehind(slot.link.hostInterface);
  const place = placeOf(slot.link.gateway, writtenOut(ipv6.gateway));
  // Packets to loopback, to the unspecified address, and TCP to a multicast group never leave a sandbox.
  const peers = [
    ...PEERS.filter((peer) => !/^(127|0|224)\./.test(peer)),
    ...IPV6_PEERS,
    slot.link.gateway,
    place.gateway6,
    // An address of another sandbox.
    place.gateway6.replace(/[^:]*$/, 'fffe'),
    ...lastingAddresses().slice(0, 2),
  ];
  const knocks = peers.flatMap((address) =>
    (['tcp', 'udp'] as const).flatMap((protocol) => PORTS.map((port) => ({ address, protocol, port }))),
  );
  const flows = [
    ...knocks,
    ...peers.map((address) => ({ address, protocol: address.includes(':') ? 'icmpv6' : 'icmpv4', port: 0 })),
  ];
  for (const [policy, ceilings] of fc.sample(fc.tuple(addressPolicies, manyCeilings), POLICIES)) {
    const held = ceilings.flatMap((words) => ceilingsOf(words));
    await network.setPolicy(slot, resolvePolicy({ policy, max_connections: 4096 }, held));
    const { place: around, seen } = await whileSettled(place, async () => {
      await probe(slot.networkNamespace, { kind: 'knock', flows: knocks });
      const echo = ['/usr/bin/python3', '-c', ECHO, ...peers] as const;
      const [program, ...parameters] = inNamespace(slot.networkNamespace, ...echo);
      await command(program, ...parameters);
      return await behind.seen();
    });
    const isAllowed = (by: NetworkPolicy, flow: (typeof flows)[number]) =>
      referenceAction(by, { ...flow, direction: 'egress', names: [] }, around) === 'allow';
    const expected = flows.filter((flow) =>
      [policy, ...ceilings.map(openedBy)].every((each) => isAllowed(each, flow)),
    );
    const wanted = new Set(expected.map(({ protocol, address, port }) => `${protocol} ${address} ${port}`));
    const difference = { closed: [...wanted.difference(seen)], opened: [...seen.difference(wanted)] };
    assert.deepEqual(
      difference,
      { closed: [], opened: [] },
      JSON.stringify({ policy, ceilings, difference }),
    );
  }
});

/** No ceiling, one, or two that both apply. */
const manyCeilings = fc.array(
  fc.subarray([
    'public',
    'private',
    'host',
    'metadata',
    'link_local',
    '10.0.0.0/8',
    '169.254.0.0/16',
    'fc00::/7',
  ]),
  { maxLength: 2 },
);

/** A ceiling as a policy of rules that allow its entries. */
function openedBy(words: readonly string[]): NetworkPolicy {
  const rules = words.map((word) => {
    // The reference model compares texts; groups are those of the list above.
    const cidr = word.replace('fc00::', 'fc00:0:0:0:0:0:0:0');
    const destination = word.includes('/') ? { cidr } : { group: word as 'public' };
    return { direction: 'egress' as const, action: 'allow' as const, destination };
  });
  return { default_egress: 'deny', rules };
}

/** Repeated when this host got or lost an address meanwhile: engines of parallel tests have addresses, and some are peers here. */
async function whileSettled<P extends Place>(
  place: P,
  look: () => Promise<ReadonlySet<string>>,
): Promise<{ readonly place: P; readonly seen: ReadonlySet<string> }> {
  for (let attempt = 0; attempt < 10; attempt++) {
    const own = ownAddresses();
    const seen = await look();
    if (own.join() === ownAddresses().join()) return { place: { ...place, own }, seen };
  }
  return assert.fail('the addresses of this host change all the time');
}

function writtenOut(address: string): string {
  const parsed = parseAddress(address);
  return parsed === null ? address : formatAddress(parsed);
}

/** IPv4 addresses of this host, without virtual interfaces, which come and go with parallel tests. */
function lastingAddresses(): readonly string[] {
  return Object.entries(networkInterfaces())
    .filter(([name]) => existsSync(`/sys/class/net/${name}/device`))
    .flatMap(([, addresses]) => addresses ?? [])
    .flatMap(({ family, address }) => (family === 'IPv4' ? [address] : []));
}

/** Includes those of `lo`: gateways of engines are there. */
function ownAddresses(): readonly string[] {
  return Object.values(networkInterfaces())
    .flatMap((addresses) => addresses ?? [])
    .map(({ address }) => writtenOut(address))
    .toSorted();
}

function placeOf(gateway: string, gateway6: string): Place & { readonly gateway6: string } {
  // The peers are in a network of this host only by its range.
  const sandboxes6 = gateway6.split(':').slice(0, 6).join(':');
  return {
    gateway,
    own: ownAddresses(),
    neighbours: [],
    sandboxes: gateway.replace(/1$/, ''),
    gateway6,
    sandboxes6,
  };
}
