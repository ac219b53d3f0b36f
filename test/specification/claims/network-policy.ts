import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { claim, provedBy, type Claim } from '../claim.ts';
import type { Ground, Json } from '../ground.ts';
import { PRIVATE_NAME, PUBLIC_NAME } from '../resolver.ts';

const PACKETS = 'packages/engine/src/network/policy.test.ts';
const MODEL = 'packages/engine/src/network/policy-property.test.ts';
const DECISIONS = 'packages/engine/src/policy/decide.test.ts';
const INGRESS = 'packages/server/src/published-ports/ingress.test.ts';
const BY_MODEL =
  'for random policies and ceilings the packet filter decides as the reference model, for every kind of address';
const rule = (path: string) => `spec.network.policy.rules.${path}`;
const groups = ['public', 'private', 'link_local', 'metadata'];

/** A sandbox whose rules are about names and the gateway; its own resolver questions are answered by the server's. */
async function ruledBox(ground: Ground): Promise<Json> {
  return await ground.shared('ruled', () =>
    ground.running({
      network: {
        policy: {
          rules: [
            { direction: 'egress', action: 'deny', destination: { domain: `denied.${PUBLIC_NAME}` } },
            { direction: 'egress', action: 'allow', destination: { domain_suffix: PUBLIC_NAME } },
            { direction: 'egress', action: 'allow', destination: { group: 'host' }, protocols: ['tcp'] },
          ],
        },
        max_connections: 16,
        dns: { query_timeout_ms: 4000 },
      },
    }),
  );
}

async function finds(ground: Ground, box: Json, name: string): Promise<boolean> {
  const { output } = await ground.sh(box, `nslookup ${name}`);
  return /1\.2\.3\.4|10\.9\.9\.9/.test(output);
}

export const policyClaims: readonly Claim[] = [
  claim(
    rule('destination.domain_suffix'),
    'A peer by the end of its name: the name itself and all below it',
    'names that the rules of a sandbox allow are found inside, others are not, and the answer shows the rules',
    async (ground) => {
      const box = await ruledBox(ground);
      assert.equal(box.spec.network.policy.rules.length, 3);
      assert.equal(await finds(ground, box, PUBLIC_NAME), true);
      assert.equal(await finds(ground, box, PRIVATE_NAME), false);
    },
  ),
  claim(
    rule('destination.domain'),
    'A peer by its name, which holds for the addresses that the name led this sandbox to',
    'a name that a rule denies is not found inside, though a later rule would allow it',
    async (ground) => {
      assert.equal(await finds(ground, await ruledBox(ground), `denied.${PUBLIC_NAME}`), false);
    },
  ),
  claim(
    rule('destination.group'),
    'A peer by the kind of its address',
    'a service of the host is reached at the gateway by a sandbox that has a rule about it',
    async (ground) => {
      const box = await ruledBox(ground);
      const server = createServer(
        (socket) => void socket.on('error', () => undefined).end('served\n'),
      ).listen(0);
      await once(server, 'listening');
      try {
        // `listen` on a port gives an address with one.
        const { port } = server.address() as { port: number };
        await ground.wait(
          async () =>
            (await ground.sh(box, `nc -w 5 host.svc.internal ${port} < /dev/null`)).output === 'served\n',
          'the service answers',
        );
      } finally {
        server.close();
      }
    },
    { covers: [rule('destination.group=host')] },
  ),
  claim(
    'spec.network.max_connections',
    'How many connections may be open at once; beyond that they are dropped',
    'the answer shows what was asked for; that it is kept is proved with packets',
    async (ground) => {
      assert.equal((await ruledBox(ground)).spec.network.max_connections, 16);
    },
    { default: '256' },
  ),
  provedBy(
    'network.max_connections',
    'No more connections are open at once',
    PACKETS,
    'a sandbox has no more open connections than its limit',
  ),
  provedBy(
    'network.max_udp_connections',
    'How many of the connections may be over UDP',
    PACKETS,
    'a sandbox has no more UDP connections than its limit',
    { covers: ['spec.network.max_udp_connections'] },
  ),
  provedBy(
    'spec.network.policy.default_egress=allow',
    'Everything can be reached but other sandboxes',
    PACKETS,
    'allow by default opens everything but other sandboxes; deny everything keeps the link and answers no name',
  ),
  provedBy(rule('direction'), 'Which way a rule looks', MODEL, BY_MODEL, {
    covers: [rule('direction=egress')],
  }),
  provedBy(
    rule('direction=ingress'),
    'A rule about who reaches published ports',
    INGRESS,
    'rules about ingress look at who comes, at the port inside and at the protocol',
  ),
  provedBy(
    rule('direction=any'),
    'A rule about both ways',
    INGRESS,
    'rules about ingress look at who comes, at the port inside and at the protocol',
  ),
  provedBy(rule('destination'), 'The peer that a rule is about', MODEL, BY_MODEL, {
    covers: [rule('destination=any')],
  }),
  provedBy(
    rule('destination.cidr'),
    'A peer by its address or a range',
    PACKETS,
    'rules open and close ranges, groups and ports, the first that fits decides',
  ),
  ...groups.map((group) =>
    provedBy(rule(`destination.group=${group}`), `Addresses of the kind ${group}`, MODEL, BY_MODEL),
  ),
  provedBy(
    rule('destination.group=loopback'),
    "Addresses of the kind loopback, which are the sandbox's own: packets to them never leave it",
    DECISIONS,
    'every address has the group that the reference model gives it',
  ),
  provedBy(
    rule('action'),
    'What happens to a connection that a rule is about',
    PACKETS,
    'rules open and close ranges, groups and ports, the first that fits decides',
    { covers: [rule('action=allow')] },
  ),
  provedBy(
    rule('action=deny'),
    'A connection that a rule is about is dropped',
    PACKETS,
    'rules open and close ranges, groups and ports, the first that fits decides',
  ),
  provedBy(rule('protocols'), 'The protocols that a rule is about; none: all', MODEL, BY_MODEL),
  ...['tcp', 'udp'].map((protocol) =>
    provedBy(rule(`protocols=${protocol}`), `A rule about ${protocol}`, MODEL, BY_MODEL),
  ),
  provedBy(
    rule('protocols=icmpv4'),
    'A rule about icmpv4',
    PACKETS,
    'ping reaches what a rule about ICMP allows, and rules with ports are not about it',
  ),
  provedBy(rule('ports.start'), 'The first port that a rule is about', MODEL, BY_MODEL),
  provedBy(rule('ports.end'), 'The last port that a rule is about', MODEL, BY_MODEL),
  provedBy(
    'spec.network.dns',
    'Resolvers of its own; null is as good as none',
    PACKETS,
    'a sandbox can have its own resolvers and query timeout',
  ),
  provedBy(
    'network.dns.query_timeout_ms',
    'How long an answer is waited for',
    PACKETS,
    'a sandbox can have its own resolvers and query timeout',
  ),
  provedBy(
    'network.dns.rebind_protection',
    'Whether names may lead to private addresses',
    PACKETS,
    'names may lead to private addresses where a rule about addresses allows them, or without rebind protection',
  ),
];
