import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { DEFAULT_DNS } from '../../../packages/contract/src/spec/defaults.ts';
import { freePort } from '../../../packages/server/src/testing/free-port.ts';
import { claim, provedBy, type Claim } from '../claim.ts';
import type { Ground, Json } from '../ground.ts';
import { PRIVATE_NAME, PUBLIC_NAME } from '../resolver.ts';
import { plainBox } from './record.ts';

const GUEST_PORT = 8080;

interface Published {
  readonly box: Json;
  readonly port: number;
}

/** A sandbox with a service behind a published port. */
async function publishedBox(ground: Ground): Promise<Published> {
  return await ground.shared('published', async () => {
    const port = await freePort();
    const ports = [{ guest_port: GUEST_PORT, host_port: port }];
    const cmd = ['/bin/sh', '-c', `while :; do nc -l -p ${GUEST_PORT} -e echo served; done`];
    return { box: await ground.running({ network: { ports }, runtime: { cmd } }), port };
  });
}

/** What the service behind a port says; empty while there is none. */
async function askPort(address: string, port: number): Promise<string> {
  const socket = connect(port, address);
  try {
    await once(socket, 'connect');
    return await text(socket);
  } catch {
    // Connections before the listener exists are refused.
    return '';
  } finally {
    socket.destroy();
  }
}

const DEFAULT_RULES = [
  {
    direction: 'egress',
    destination: { group: 'host' },
    protocols: ['udp', 'tcp'],
    ports: [{ start: 53, end: 53 }],
    action: 'allow',
  },
  { direction: 'egress', destination: { group: 'public' }, protocols: [], ports: [], action: 'allow' },
];
const INTERFACE_CLAIMS = {
  ipv4_address: 'The address of the sandbox, one of the pool of the host (--address-pool) that no other has',
  ipv4_pool: 'The range that its address is from, inside of the pool of the host',
  mac: 'The MAC address of its interface',
  mtu: 'The largest packet of its interface',
} as const;
const DENY_ALL = { default_egress: 'deny', default_ingress: 'deny', rules: [] };

async function deniedBox(ground: Ground): Promise<Json> {
  return await ground.shared('denied', () => ground.running({ network: { policy: DENY_ALL } }));
}

const LINKS = 'ip -o link | cut -d" " -f2; cat /etc/resolv.conf';

export const networkClaims: readonly Claim[] = [
  claim(
    'spec.network.enabled',
    'Whether it has a network at all beside loopback',
    'the interfaces and the resolver inside, with `false` and without',
    async (ground) => {
      const box = await ground.running({ network: { enabled: false } });
      assert.equal(box.spec.network.enabled, false);
      assert.equal(await ground.seen(box, LINKS), 'lo:');
      await ground.remove(box.id);
      const plain = await plainBox(ground);
      assert.equal(plain.spec.network.enabled, true);
      assert.match(await ground.seen(plain, LINKS), /eth0[^]*nameserver/);
    },
    { default: '`true`' },
  ),
  claim(
    'spec.network.ports.guest_port',
    'The port inside that a published port leads to',
    'what a service inside says is read on the host',
    async (ground) => {
      const { box, port } = await publishedBox(ground);
      assert.equal(box.spec.network.ports[0].guest_port, GUEST_PORT);
      await ground.wait(async () => (await askPort('127.0.0.1', port)) === 'served\n', 'the service answers');
    },
  ),
  claim(
    'spec.network.ports.host_port',
    'The port of the host; it can be published once',
    'a second sandbox that asks for it is refused',
    async (ground) => {
      const { box, port } = await publishedBox(ground);
      assert.equal(box.spec.network.ports[0].host_port, port);
      const { status } = await ground.create({ network: { ports: [{ guest_port: 1, host_port: port }] } });
      assert.equal(status, 409);
    },
  ),
  claim(
    'spec.network.ports.host_bind',
    'The address that the port is published on; the operator allows others',
    'it is loopback, and another address is refused by name',
    async (ground) => {
      const { box } = await publishedBox(ground);
      assert.equal(box.spec.network.ports[0].host_bind, '127.0.0.1');
      const ports = [{ guest_port: 1, host_port: await freePort(), host_bind: '0.0.0.0' }];
      const error = await ground.refusal({ network: { ports } });
      assert.equal(error.details.field, 'network.ports[0].host_bind');
    },
  ),
  claim(
    'spec.network.ports.protocol',
    'What is carried over the port',
    'a connection to the port of a sandbox that said nothing',
    async (ground) => {
      const { box } = await publishedBox(ground);
      assert.equal(box.spec.network.ports[0].protocol, 'tcp');
    },
    { covers: ['spec.network.ports.protocol=tcp'] },
  ),
  provedBy(
    'spec.network.ports.protocol=udp',
    'Datagrams are carried in both directions',
    'test/e2e/udp-ports.test.ts',
    'many clients are distinguished, and each gets its answers',
  ),
  claim(
    'spec.network.ports',
    'Null is as good as no ports',
    'a create with null has none',
    async (ground) => {
      const { status } = await ground.create({ network: { ports: null } });
      assert.deepEqual([status, (await plainBox(ground)).spec.network.ports], [200, []]);
    },
    { default: 'none' },
  ),
  claim(
    'spec.network.secrets',
    'Null is as good as none',
    'a create with null is taken, and the answer of one without has none',
    async (ground) => {
      const { status } = await ground.create({ network: { secrets: null } });
      assert.deepEqual([status, (await plainBox(ground)).spec.network.secrets], [200, []]);
    },
    { default: 'none' },
  ),
  claim(
    'spec.network.tls',
    'Null is as good as nothing: connections are left alone, and so is the interface',
    'a create with null for both is taken, and the answer of one without shows the defaults',
    async (ground) => {
      const { status } = await ground.create({ network: { tls: null, interface: null } });
      const { tls, interface: wired } = (await plainBox(ground)).spec.network;
      assert.deepEqual([status, tls.enabled, wired.mtu > 0], [200, false, true]);
    },
    { covers: ['spec.network.interface'] },
  ),
  ...(['ipv4_address', 'ipv4_pool', 'mac', 'mtu'] as const).map((name) =>
    provedBy(
      `spec.network.interface.${name}`,
      INTERFACE_CLAIMS[name],
      'test/engine/interface.test.ts',
      'a sandbox has the address, MAC and MTU that it asks for, and reaches others with them',
    ),
  ),
  claim(
    'spec.network.policy',
    'Null is the default: names are resolved, public addresses can be reached, and no others',
    'the gateway of the host, an address of the host and the metadata address are out of reach inside',
    async (ground) => {
      const plain = await plainBox(ground);
      const gateway = await ground.seen(plain, `ip route | sed -n 's/^default via \\([^ ]*\\).*/\\1/p'`);
      const hosts = [gateway, '169.254.169.254', '10.255.255.254'].join(' ');
      const script = `for host in ${hosts}; do nc -w 2 $host 80 < /dev/null && echo $host & done; wait`;
      assert.equal(await ground.seen(plain, script), '');
      const { status } = await ground.create({ network: { policy: null } });
      assert.equal(status, 200);
    },
  ),
  claim(
    'spec.network.policy.default_egress',
    'What happens to connections that no rule is about',
    'with `deny` and no rules no name is found and nothing is reached, though there is an interface',
    async (ground) => {
      const box = await deniedBox(ground);
      assert.equal(box.spec.network.policy.default_egress, 'deny');
      assert.match(await ground.seen(box, LINKS), /eth0/);
      const { output } = await ground.sh(box, `nslookup ${PUBLIC_NAME}`);
      assert.doesNotMatch(output, /1\.2\.3\.4/);
    },
    { default: '`deny` where a policy is given', covers: ['spec.network.policy.default_egress=deny'] },
  ),
  claim(
    'spec.network.policy.default_ingress',
    'What happens to connections from outside that no rule is about',
    'with either value nothing comes in but through published ports, of which there are none',
    async (ground) => {
      const box = await deniedBox(ground);
      assert.equal(box.spec.network.policy.default_ingress, 'deny');
      const policy = { default_egress: 'deny', default_ingress: 'allow', rules: DEFAULT_RULES };
      const open = await ground.running({ network: { policy } });
      assert.deepEqual([open.spec.network.policy.default_ingress, open.spec.network.ports], ['allow', []]);
      assert.match(await ground.seen(open, LINKS), /eth0/);
      await ground.remove(open.id);
    },
    {
      default: '`deny` where a policy is given',
      covers: ['spec.network.policy.default_ingress=deny', 'spec.network.policy.default_ingress=allow'],
    },
  ),
  claim(
    'network.policy.default-rules',
    'The two rules of the default, spelled out as clients send them, are taken',
    'a sandbox with them has the network of one without a policy, and the answer shows the rules',
    async (ground) => {
      const policy = { default_egress: 'deny', default_ingress: 'allow', rules: DEFAULT_RULES };
      const box = await ground.running({ network: { policy } });
      assert.deepEqual(box.spec.network.policy.rules, DEFAULT_RULES);
      assert.match(await ground.seen(box, LINKS), /eth0[^]*nameserver/);
      await ground.remove(box.id);
    },
  ),
];

export const dnsClaims: readonly Claim[] = [
  claim(
    'spec.network.dns.nameservers',
    'The resolvers that are asked instead of those of the host; none in the answer means that it has no own',
    'a name that only the resolver of `--nameserver` knows is resolved inside',
    async (ground) => {
      const plain = await plainBox(ground);
      assert.deepEqual(plain.spec.network.dns.nameservers, []);
      assert.match(await ground.seen(plain, `nslookup ${PUBLIC_NAME}`), /1\.2\.3\.4/);
    },
    { default: 'those of the host' },
  ),
  claim(
    'spec.network.dns.query_timeout_ms',
    'How long the answer of a resolver is waited for',
    'the answer shows the limit that the forwarder of names works with',
    async (ground) => {
      assert.equal((await plainBox(ground)).spec.network.dns.query_timeout_ms, DEFAULT_DNS.query_timeout_ms);
    },
    { default: '5000' },
  ),
  claim(
    'spec.network.dns.rebind_protection',
    'Names that lead to private addresses do not exist',
    'a name that the resolver leads to a private address is not found inside',
    async (ground) => {
      const plain = await plainBox(ground);
      assert.equal(plain.spec.network.dns.rebind_protection, true);
      const { exit_code: code, output } = await ground.sh(plain, `nslookup ${PRIVATE_NAME}`);
      assert.notEqual(code, 0);
      assert.doesNotMatch(output, /10\.9\.9\.9/);
    },
    { default: '`true`' },
  ),
];
