import assert from 'node:assert/strict';
import { networkInterfaces } from 'node:os';
import { test } from 'node:test';
import { connectedNetworks, distinctNetworks } from './connected-networks.ts';

const network = (base: string, prefixLength: number) => ({ interface: 'eth0', base, prefixLength });

test('networks are listed once, by their first address, without those inside a larger one', () => {
  const networks = [
    network('10.1.2.3', 24),
    network('10.1.2.0', 24),
    network('10.1.0.0', 16),
    network('203.0.113.7', 32),
    network('0.0.0.0', 0),
    network('128.0.0.1', 1),
  ];
  assert.deepEqual(distinctNetworks(networks), ['10.1.0.0/16', '128.0.0.0/1']);
});

test('the networks of this host are read', async () => {
  const networks = await connectedNetworks('v-none-');
  const isConnected = Object.values(networkInterfaces())
    .flat()
    .some((each) => each?.family === 'IPv4' && !each.internal);
  const ipv4 = networks.filter((each) => !each.includes(':'));
  assert.equal(ipv4.length > 0, isConnected);
  for (const each of ipv4) assert.match(each, /^\d+\.\d+\.\d+\.\d+\/[1-9]\d?$/);
  for (const each of networks.slice(ipv4.length))
    assert.match(each, /^[2-9a-e][\da-f:]+\/\d+$|^f[cd][\da-f:]+\/\d+$/);
});
