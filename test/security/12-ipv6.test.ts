import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type AddressInfo, type Server } from 'node:net';
import { networkInterfaces } from 'node:os';
import { after, before, describe, test } from 'node:test';
import { waitUntil } from '@svc/contract/testing';
import { command } from '../../packages/engine/src/testing/command.ts';
import { GuestProbe } from '../engine/guest-probe.ts';
import { CLASSES, startSandbox, type TestSandbox } from '../engine/sandbox-fixture.ts';
import { TestEngine } from '../engine/start-engine.ts';

/** Attacks from a sandbox with IPv6: it cannot forge addresses on its link, and cannot reach the operator's networks. */
let engine: TestEngine;
let victim: TestSandbox;
let attacks: GuestProbe;
let probe: GuestProbe;
let everywhere: Server;
const VICTIM_PORT = 8099;
const table = `svctest_ipv6_${process.pid}`;
before(async () => {
  [engine, attacks, probe] = await Promise.all([
    TestEngine.start({ args: ['--ipv6-pool', 'auto'] }),
    GuestProbe.compile('../security/ipv6-attacks.c'),
    GuestProbe.compile(),
  ]);
  victim = await startSandbox(engine, 'container');
  await probe.putInto(victim);
  const { address } = await linkOf(victim);
  await victim.sh(`httpd -p [::]:${VICTIM_PORT}`);
  const itself = await probe.run(victim, ['connect', address, String(VICTIM_PORT)]);
  assert.deepEqual(Object.values(itself), ['ok'], 'the other sandbox listens');
  everywhere = createServer((socket) => socket.on('error', () => undefined).end('reached'));
  everywhere.listen(0, '::');
  await once(everywhere, 'listening');
  // Records packets after our first chain, before any other decision.
  const udp = 'udp dport 9 add @sources { ip6 saddr }';
  const icmp = 'meta l4proto ipv6-icmp add @kinds { icmpv6 type }';
  const chain = `chain behind { type filter hook prerouting priority raw + 1; policy accept; ${udp}; ${icmp}; };`;
  const set = (name: string, type: string) => `set ${name} { type ${type}; flags dynamic; size 4096; };`;
  await command(
    'nft',
    `table inet ${table} { ${set('sources', 'ipv6_addr')} ${set('kinds', 'icmpv6_type')} ${chain} }`,
  );
});
after(async () => {
  everywhere.close();
  await command('nft', 'delete', 'table', 'inet', table);
  await engine.destroy();
});

interface Link {
  readonly address: string;
  readonly gateway: string;
}

async function linkOf(sandbox: TestSandbox): Promise<Link> {
  const { stdout } = await sandbox.sh('ip -6 address show dev eth0; ip -6 route');
  const address = /inet6 ([0-9a-f:]+)\/128/.exec(stdout)?.[1] ?? assert.fail(stdout);
  const gateway = /default via (\S+:\S*)/.exec(stdout)?.[1] ?? assert.fail(stdout);
  return { address, gateway };
}

async function seen(set: 'sources' | 'kinds'): Promise<readonly string[]> {
  const listed = await command('nft', 'list', 'set', 'inet', table, set);
  return (/elements = \{([^}]*)\}/.exec(listed)?.[1] ?? '').split(',').map((each) => each.trim());
}

for (const isolation of CLASSES) {
  describe(`on class ${isolation}`, { concurrency: false }, () => {
    let sandbox: TestSandbox;
    let link: Link;
    before(async () => {
      sandbox = await startSandbox(engine, isolation);
      link = await linkOf(sandbox);
    });
    after(() => sandbox.remove());

    const attack = async (what: string, ...addresses: readonly string[]): Promise<string> => {
      await attacks.putInto(sandbox);
      return (await sandbox.run({ cmd: '/bin/probe', args: [what, 'eth0', ...addresses] })).stdout;
    };

    test('packets with a forged source address are dropped', async () => {
      const { address: other } = await linkOf(victim);
      const forged = [other, '2001:db8::7', 'fe80::7', link.gateway];
      const output = await attack('forge', link.gateway, ...forged, link.address);
      assert.ok(output.endsWith(`${link.address} ok\n`), output);
      // gVisor's own kernel sends none of them.
      if (isolation === 'container') assert.equal(output.match(/ ok$/gm)?.length, forged.length + 1, output);
      await waitUntil(async () => (await seen('sources')).includes(link.address));
      for (const address of forged) assert.ok(!(await seen('sources')).includes(address), address);
    });

    test('router and neighbour messages do not reach the host, and its tables of neighbours and routes stay', async () => {
      const routes = async () => await command('ip', '-6', 'route', 'show', 'table', 'all');
      const before = (await routes()).split('\n').filter((line) => line.includes('proto ra'));
      await attack('advertise', link.gateway);
      await attack('flood', link.gateway);
      const kinds = await seen('kinds');
      for (const kind of ['nd-router-advert', 'nd-neighbor-advert', 'nd-neighbor-solicit', 'nd-redirect'])
        assert.ok(!kinds.includes(kind), kinds.join());
      assert.deepEqual(
        (await routes()).split('\n').filter((line) => line.includes('proto ra')),
        before,
      );
      const known = (await command('ip', '-6', 'neigh', 'show', 'nud', 'all')).split('\n');
      assert.ok(known.filter((line) => /^(?:fe80|ff02)::/.test(line)).length < 100, `${known.length}`);
      // The neighbour table has space for others: queries still reach the resolver over IPv6.
      const { gateway } = await linkOf(victim);
      const asked = await victim.sh(`nslookup -type=a example.invalid ${gateway} 2>&1`);
      assert.doesNotMatch(asked.stdout, /No buffer space|unreachable/);
    });

    test('neither this host nor another sandbox is reached, under any name of theirs', async () => {
      await probe.putInto(sandbox);
      const { port } = everywhere.address() as AddressInfo;
      const { address: other } = await linkOf(victim);
      const own = Object.values(networkInterfaces()).flatMap((each) => each ?? []);
      const inside = own.filter(({ family, internal }) => family === 'IPv4' && !internal);
      const hex = (address: string) =>
        Buffer.from(address.split('.').map(Number)).toString('hex').replace(/^.{4}/, '$&:');
      const disguised = ['127.0.0.1', ...inside.map(({ address }) => address)].flatMap((address) => [
        `::ffff:${address}`,
        `::${address}`,
        `64:ff9b::${address}`,
        `2002:${hex(address)}::1`,
        `2001:0:${hex(address)}::1`,
      ]);
      const plain = own.filter(({ family }) => family === 'IPv6').map(({ address }) => address);
      const places = [link.gateway, ...plain, ...disguised].map((host) => [host, String(port)]);
      const all = [[other, String(VICTIM_PORT)], ...places].flat();
      const tried = await probe.run(sandbox, ['connect', ...all]);
      assert.equal(Object.keys(tried).length, new Set([other, ...places.map(([host]) => host)]).size);
      assert.deepEqual(
        Object.entries(tried).filter(([, result]) => result === 'ok'),
        [],
      );
    });
  });
}
