import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { networkInterfaces } from 'node:os';
import { test } from 'node:test';
import fc from 'fast-check';
import { addressPolicies, PEERS } from '../testing/random-policies.ts';
import { referenceAction, type Place } from '../testing/reference-model.ts';
import { resolvePolicy } from '../policy/resolve-policy.ts';
import { command } from '../testing/command.ts';
import { probe } from '../testing/probe.ts';
import { TestEngine } from '../testing/test-engine.ts';
import { loadRuleset } from './nft.ts';

const POLICIES = 12;
const PORTS = [22, 80, 443, 8080, 65_535];

/** Sees, behind our rules and before anybody else's, what they let through, and lets nothing of it go any further. */
async function watchBehind(
  hostInterface: string,
): Promise<AsyncDisposable & { seen(): Promise<ReadonlySet<string>> }> {
  const table = `inet svctest_${randomBytes(4).toString('hex')}`;
  await loadRuleset(`
    table ${table} {
      set seen { type inet_proto . ipv4_addr . inet_service; flags dynamic; size 65535; }
      chain behind {
        type filter hook prerouting priority mangle + 1; policy accept;
        iifname != "${hostInterface}" return
        meta l4proto { tcp, udp } add @seen { ip protocol . ip daddr . th dport }
        drop
      }
    }
  `);
  return {
    seen: async () => {
      const text = await command('nft', 'list', 'set', ...table.split(' '), 'seen');
      await command('nft', 'flush', 'set', ...table.split(' '), 'seen');
      return new Set(
        [...text.matchAll(/(tcp|udp) \. ([\d.]+) \. (\d+)/g)].map(([, ...parts]) => parts.join(' ')),
      );
    },
    [Symbol.asyncDispose]: async () => void (await command('nft', 'delete', 'table', ...table.split(' '))),
  };
}

test('for random policies the packet filter decides as the reference model, for every kind of address', async () => {
  await using engine = await TestEngine.make(95);
  const network = engine.open();
  await network.recover([]);
  const slot = await network.acquire('public', AbortSignal.timeout(100_000));
  assert.ok(slot.link);
  await using behind = await watchBehind(slot.link.hostInterface);
  const place = placeOf(slot.link.gateway);
  // Packets to loopback, to nobody, and of TCP to a group of hosts never leave a sandbox.
  const peers = [
    ...PEERS.filter((peer) => !/^(127|0|224)\./.test(peer)),
    slot.link.gateway,
    ...place.own.slice(0, 2),
  ];
  const flows = peers.flatMap((address) =>
    (['tcp', 'udp'] as const).flatMap((protocol) => PORTS.map((port) => ({ address, protocol, port }))),
  );
  for (const policy of fc.sample(addressPolicies, POLICIES)) {
    await network.setPolicy(slot, resolvePolicy({ policy, max_connections: 4096 }));
    const expected = flows.filter(
      (flow) => referenceAction(policy, { ...flow, direction: 'egress', names: [] }, place) === 'allow',
    );
    const wanted = new Set(expected.map(({ protocol, address, port }) => `${protocol} ${address} ${port}`));
    await probe(slot.networkNamespace, { kind: 'knock', flows });
    const seen = await behind.seen();
    const difference = { closed: [...wanted.difference(seen)], opened: [...seen.difference(wanted)] };
    assert.deepEqual(difference, { closed: [], opened: [] }, JSON.stringify({ policy, difference }));
  }
});

function placeOf(gateway: string): Place {
  const own = Object.values(networkInterfaces())
    .flatMap((addresses) => addresses ?? [])
    .filter(({ family, internal }) => family === 'IPv4' && !internal)
    .map(({ address }) => address);
  // None of the peers is in a network of this host but by its range.
  return { gateway, own, neighbours: [], sandboxes: gateway.replace(/1$/, '') };
}
