import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { networkInterfaces } from 'node:os';
import { basename } from 'node:path';
import { promisify } from 'node:util';
import { after, before, describe, test } from 'node:test';
import type { Network } from '@svc/contract';
import { PlatformError } from '@svc/contract/errors';
import { waitUntil } from '@svc/contract/testing';
import { startInternet, type Internet } from '../../packages/engine/src/testing/internet.ts';
import { GuestProbe } from './guest-probe.ts';
import { CLASSES, specOf, startSandbox } from './sandbox-fixture.ts';
import { TestEngine } from './start-engine.ts';

const run = promisify(execFile);
let internet: Internet;
let engine: TestEngine;
let probe: GuestProbe;
/** Of the pool of the engine: everything but the last number. */
let prefix: string;
/** Of its IPv6 addresses: everything but the last four digits, which are those of the last two numbers. */
let ipv6Prefix: string;
const ipv6Of = (last: number) => `${ipv6Prefix}${((Number(prefix.split('.')[2]) << 8) | last).toString(16)}`;
before(async () => {
  internet = await startInternet();
  [engine, probe] = await Promise.all([
    TestEngine.start({ args: ['--nameserver', internet.resolver, '--ipv6-pool', 'auto'] }),
    GuestProbe.compile(),
  ]);
  const first = await startSandbox(engine, 'container');
  const [a, b, c] = (first.view.address ?? '').split('.').map(Number);
  // The pool is a /22; its third quarter.
  prefix = `${a}.${b}.${Math.floor((c ?? 0) / 4) * 4 + 2}`;
  const { ipv6Address } = (await engine.client.getSandbox(first.id)).resolved.interface ?? {};
  ipv6Prefix = ipv6Address?.replace(/[^:]*$/, '') ?? '';
  await first.remove();
});
after(async () => {
  await engine.destroy();
  await internet[Symbol.asyncDispose]();
});

type Interface = NonNullable<Network['interface']>;

async function refusalOf(
  wanted: Interface,
  more: Network = {},
): Promise<{ field: unknown; message: string }> {
  const spec = specOf({ network: { ...more, interface: wanted } });
  try {
    const { id } = await engine.client.createSandbox({ spec, start: true });
    await engine.client.removeSandbox(id);
    return { field: null, message: 'it was taken' };
  } catch (error) {
    assert.ok(PlatformError.is(error, 'invalid_sandbox_config'), String(error));
    return { field: error.details?.['field'], message: error.message };
  }
}

for (const isolation of CLASSES) {
  describe(`on class ${isolation}`, { concurrency: false }, () => {
    test('a sandbox has the address, MAC and MTU that it asks for, and reaches others with them', async () => {
      const wanted = { ipv4_address: `${prefix}.77`, mac: [0x02, 0xaa, 0xbb, 0xcc, 0xdd, 0x0e], mtu: 1280 };
      const network = { interface: { ...wanted, ipv4_pool: `${prefix}.0/25` } };
      const sandbox = await startSandbox(engine, isolation, { network });
      const look = async () => {
        const { stdout } = await sandbox.sh(
          `ip -o addr show eth0; ip -o link show eth0; nc ${internet.publicAddress} 8080 < /dev/null
           nc ${internet.publicIpv6Address} 8080 < /dev/null`,
        );
        assert.match(stdout, new RegExp(`inet6 ${ipv6Of(77)}/`));
        assert.match(stdout, new RegExp(`you are ${internet.hostIpv6Address}`));
        assert.match(stdout, new RegExp(`inet ${prefix}\\.77/`));
        assert.match(stdout, /mtu 1280[^]*02:aa:bb:cc:dd:0e/);
        assert.match(stdout, new RegExp(`you are ${internet.hostAddress}`));
      };
      await look();
      const { resolved, address } = await engine.client.getSandbox(sandbox.id);
      assert.deepEqual(resolved.interface, {
        ipv4Address: wanted.ipv4_address,
        ipv6Address: ipv6Of(77),
        mac: wanted.mac,
        mtu: wanted.mtu,
      });
      assert.equal(address, wanted.ipv4_address);
      const { field, message } = await refusalOf({ ipv4_address: wanted.ipv4_address });
      assert.equal(field, 'network.interface.ipv4_address');
      assert.match(message, /is in use; choose another one/);
      const taken = await refusalOf({ ipv6_address: ipv6Of(77) });
      assert.equal(taken.field, 'network.interface.ipv6_address');
      assert.match(taken.message, /is in use; choose another one/);
      await engine.client.stopSandbox(sandbox.id, { graceMs: 0 });
      assert.equal((await engine.client.getSandbox(sandbox.id)).resolved.interface, null);
      await engine.client.startSandbox(sandbox.id);
      await look();
      await engine.restart();
      await look();
      await sandbox.remove();
      assert.equal((await refusalOf({ ipv4_address: wanted.ipv4_address })).message, 'it was taken');
    });

    test('a sandbox has an MTU of 1,500, and large packets both ways where the way out takes less', async (t) => {
      const sandbox = await startSandbox(engine, isolation);
      t.after(() => sandbox.remove());
      assert.equal((await engine.client.getSandbox(sandbox.id)).resolved.interface?.mtu, 1500);
      const setMtu = (mtu: number) => run('ip', ['link', 'set', internet.hostInterface, 'mtu', String(mtu)]);
      t.after(() => setMtu(1500));
      await setMtu(1300);
      for (const address of [internet.publicAddress, internet.publicIpv6Address]) {
        // What is said comes back; the pipe holds the connection open until all of it did.
        const { stdout } = await sandbox.sh(
          `rm -f /tmp/hold; mkfifo /tmp/hold; { head -c 300000 /dev/zero; cat /tmp/hold; } |
             timeout 60 nc ${address} 8080 | { head -c 300000 | wc -c; : > /tmp/hold; }; ip -o link show eth0`,
        );
        assert.match(stdout, /^300000\n[^]*mtu 1500/, address);
        // The other end learned the size from the handshake, not from lost packets.
        const held = sandbox.sh(`mkfifo /tmp/told; cat /tmp/told | nc ${address} 8080`);
        const look = ['netns', 'exec', basename(internet.namespace), 'ss', '-Htin', 'state', 'established'];
        const sent = async () => Number(/\bmss:(\d+)/.exec((await run('ip', look)).stdout)?.[1] ?? 1500);
        await waitUntil(async () => (await sent()) <= 1300);
        await sandbox.sh(': > /tmp/told');
        await held;
        await sandbox.sh('rm /tmp/told');
      }
    });

    test('echo requests go where the policy lets them, without a raw socket', async () => {
      const sandbox = await startSandbox(engine, isolation);
      await probe.putInto(sandbox);
      const ping = async (address: string, patienceMs: number) =>
        (await probe.run(sandbox, ['ping', String(patienceMs), address]))[address];
      for (const address of [internet.publicAddress, internet.publicIpv6Address])
        assert.equal(await ping(address, 60_000), 'ok', address);
      const { privateAddress, metadataAddress, hostAddress, hostIpv6Address, ipv6Address } = internet;
      for (const address of [privateAddress, metadataAddress, hostAddress, hostIpv6Address, ipv6Address])
        assert.notEqual(await ping(address, 1500), 'ok', address);
      const allow = { direction: 'egress', action: 'allow', destination: 'any' } as const;
      await engine.client.setNetwork(sandbox.id, {
        policy: { rules: [{ ...allow, protocols: ['tcp', 'udp'] }] },
      });
      for (const address of [internet.publicAddress, internet.publicIpv6Address])
        assert.notEqual(await ping(address, 1500), 'ok', address);
      const echo = {
        ...allow,
        destination: { cidr: internet.privateAddress },
        protocols: ['icmpv4'],
      } as const;
      await engine.client.setNetwork(sandbox.id, { policy: { rules: [{ ...echo, protocols: ['icmpv4'] }] } });
      assert.equal(await ping(internet.privateAddress, 60_000), 'ok');
      assert.notEqual(await ping(internet.publicAddress, 1500), 'ok');
      const { socket_raw: raw } = await probe.run(sandbox, ['calls']);
      assert.match(raw ?? '', /^(EPERM|EACCES)$/);
      await sandbox.remove();
    });
  });
}

test('an IPv6 address is that of the IPv4 address it ends with, and a range of one is a range of the other', async () => {
  const ask = async (wanted: Interface) => {
    const sandbox = await startSandbox(engine, 'container', { network: { interface: wanted } });
    const { resolved } = await engine.client.getSandbox(sandbox.id);
    await sandbox.remove();
    return [resolved.interface?.ipv4Address, resolved.interface?.ipv6Address];
  };
  assert.deepEqual(await ask({ ipv6_address: ipv6Of(99) }), [`${prefix}.99`, ipv6Of(99)]);
  assert.deepEqual(await ask({ ipv6_pool: `${ipv6Of(98)}/128` }), [`${prefix}.98`, ipv6Of(98)]);
  assert.deepEqual(await ask({ ipv4_address: `${prefix}.97`, mtu: 1000 }), [`${prefix}.97`, null]);
});

test('an address out of a range is one of it, until all are in use', async () => {
  const network = { interface: { ipv4_pool: `${prefix}.128/31` } };
  const two = await Promise.all([1, 2].map(() => startSandbox(engine, 'container', { network })));
  assert.deepEqual(new Set(two.map(({ view }) => view.address)), new Set([`${prefix}.128`, `${prefix}.129`]));
  await assert.rejects(
    startSandbox(engine, 'container', { network }),
    (error) => PlatformError.is(error, 'insufficient_capacity') && error.message.includes(`${prefix}.128/31`),
  );
  await Promise.all(two.map((sandbox) => sandbox.remove()));
});

test('an interface that cannot be is refused by the name of its field, before anything is made', async () => {
  const [own = ''] = Object.values(networkInterfaces()).flatMap((addresses) =>
    (addresses ?? [])
      .filter(({ family, internal }) => family === 'IPv4' && !internal)
      .map(({ address }) => address),
  );
  const gateway = prefix.replace(/\d+$/, (third) => `${Number(third) - 2}.1`);
  const cases: readonly (readonly [Interface, keyof Interface, RegExp])[] = [
    [{ ipv4_address: '203.0.113.7' }, 'ipv4_address', /must lie in 10\./],
    [{ ipv4_address: own }, 'ipv4_address', /must lie in 10\./],
    [{ ipv4_address: gateway }, 'ipv4_address', /must lie in 10\./],
    [{ ipv4_address: `${prefix}.7`, ipv4_pool: `${prefix}.128/25` }, 'ipv4_address', /which is ipv4_pool/],
    [{ ipv4_address: '10.0.0.300' }, 'ipv4_address', /must be an IPv4 address/],
    [{ ipv4_pool: '10.0.0.0/8' }, 'ipv4_pool', /must lie in 10\./],
    [{ ipv4_pool: `${prefix}.7/24` }, 'ipv4_pool', /must be a range/],
    [{ mac: [1, 0, 0, 0, 0, 1] }, 'mac', /one station/],
    [{ mac: [0, 0, 0, 0, 0, 0] }, 'mac', /one station/],
    [{ mtu: 575 }, 'mtu', /576/],
    [{ ipv6_address: 'fd00::7' }, 'ipv6_address', /must end with an address of 10\./],
    [{ ipv6_address: '10.0.0.7' }, 'ipv6_address', /must be an IPv6 address/],
    [{ ipv6_address: ipv6Of(7), ipv4_address: `${prefix}.8` }, 'ipv6_address', /rest of network.interface/],
    [{ ipv6_address: ipv6Of(7), mtu: 1279 }, 'ipv6_address', /1280/],
    [{ ipv6_pool: 'fd00::/64' }, 'ipv6_pool', /must end with an address of 10\./],
    [{ ipv6_pool: `${ipv6Of(7)}/120` }, 'ipv6_pool', /must be a range/],
  ];
  for (const [wanted, name, reason] of cases) {
    const { field, message } = await refusalOf(wanted);
    assert.equal(field, `network.interface.${name}`, message);
    assert.match(message, reason);
  }
  assert.equal((await refusalOf({ mtu: 1400 }, { enabled: false })).field, 'network.interface');
  assert.deepEqual(await engine.client.listSandboxes(), []);
});
