import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';

/** Server-side request forgery: addresses of webhooks and identity providers cannot lead the server to internal hosts. */
const CHILD = join(import.meta.dirname, 'outbound-target.ts');
/** This host has an address that is public elsewhere, as hosts of a hosting company do. */
const HOST_NETWORKS = `
  ip link set lo up
  ip link add own0 type veth peer name own1
  ip link set own1 up
  ip address add 192.5.6.1/24 dev own0
  ip -6 address add 2a00:5:6::1/64 dev own0 nodad
  ip link set own0 up
  mount --bind "$1" /etc/resolv.conf
  shift
  exec "$@"`;

async function ask(...urls: readonly string[]): Promise<{ outcomes: string[]; connections: number }> {
  const folder = await mkdtemp(`${tmpdir()}/svc-outbound-`);
  try {
    await writeFile(join(folder, 'resolv.conf'), 'nameserver 127.0.0.1\noptions timeout:2 attempts:1\n');
    const inside = ['--net', '--mount', 'sh', '-ec', HOST_NETWORKS, 'sh', join(folder, 'resolv.conf')];
    const { stdout } = await promisify(execFile)('unshare', [...inside, process.execPath, CHILD, ...urls]);
    return JSON.parse(stdout);
  } finally {
    await rm(folder, { recursive: true });
  }
}

test('a name that resolves to an internal address is not connected to, in any notation, and also after DNS rebinding', async () => {
  const names = ['inside', 'mapped', 'translated', 'tunnelled', 'own', 'rebound', 'rebound'];
  const { outcomes, connections } = await ask(...names.map((name) => `https://${name}.example/`));
  assert.equal(connections, 0, outcomes.join('\n'));
  for (const index of [0, 1, 2, 3, 4, 6]) assert.match(outcomes[index] ?? '', /leads to no public address/);
  // It was looked up once, and what was found then was tried: there is no way out of here.
  assert.match(outcomes[5] ?? '', /ENETUNREACH/);
});

test('networks of this host are internal, in any address range, and through address translators too', async () => {
  const hosts = [
    '192.5.6.1',
    '192.5.6.30',
    '[::ffff:192.5.6.30]',
    '[64:ff9b::192.5.6.30]',
    '[2002:c005:61e::1]',
    '[2a00:5:6::2]',
  ];
  const { outcomes, connections } = await ask(...hosts.map((host) => `https://${host}/`));
  assert.equal(connections, 0);
  for (const [index, outcome] of outcomes.entries())
    assert.match(outcome, /which is no public address/, hosts[index]);
});
