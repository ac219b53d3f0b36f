import assert from 'node:assert/strict';
import { test } from 'node:test';
import { cidr, formatAddress, type Address } from './address.ts';
import { classify, isPublicEverywhere, type HostNetworks } from './groups.ts';

/**
 * A second copy of the registries, so that a change of the product's lists is made here deliberately.
 * https://www.iana.org/assignments/iana-ipv4-special-registry https://www.iana.org/assignments/iana-ipv6-special-registry
 */
const SPECIAL = `
  0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24 192.0.2.0/24 192.31.196.0/24
  192.52.193.0/24 192.88.99.0/24 192.168.0.0/16 192.175.48.0/24 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 224.0.0.0/4
  240.0.0.0/4 255.255.255.255 168.63.129.16
  ::1 :: 64:ff9b:1::/48 100::/64 100:0:0:1::/64 2001::/23 2001:db8::/32 2620:4f:8000::/48 3fff::/20 5f00::/16 fc00::/7 fe80::/10
  ff00::/8`
  .trim()
  .split(/\s+/);

/** Beside those ranges, one by one. */
const PUBLIC = `
  1.1.1.1 9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0 126.255.255.255 128.0.0.0 169.253.255.255 172.15.255.255 172.32.0.0
  192.0.1.0 192.0.3.0 192.167.255.255 192.169.0.0 198.17.255.255 198.20.0.0 198.51.99.255 203.0.112.255 203.0.114.0
  223.255.255.255 2001:200:: 2001:db7:ffff:: 2001:db9:: 2606:4700::1111 2620:4f:7fff:: 3ffe::1`
  .trim()
  .split(/\s+/);

const HOST_NETWORKS: HostNetworks = {
  gateway: cidr('10.200.0.1'),
  hostAddresses: [],
  neighbours: [],
  pool: cidr('10.200.0.0/16'),
};

function edgesOf(text: string): readonly Address[] {
  const { family, value, prefixLength } = cidr(text);
  const size = 1n << BigInt((family === 4 ? 32 : 128) - prefixLength);
  return [value, value + size / 2n, value + size - 1n].map((each) => ({ family, value: each }));
}

test('no address of the registries of special-purpose addresses is public, at either end of each range', () => {
  const wrong = SPECIAL.flatMap(edgesOf).filter(
    (address) => isPublicEverywhere(address) || classify(address, HOST_NETWORKS) === 'public',
  );
  assert.deepEqual(wrong.map(formatAddress), []);
});

test('the addresses next to them are public, unless this host is connected to their network', () => {
  const wrong = PUBLIC.map(cidr).filter(
    (address) => !isPublicEverywhere(address) || classify(address, HOST_NETWORKS) !== 'public',
  );
  assert.deepEqual(wrong.map(formatAddress), []);
  const neighbours = [cidr('1.1.1.0/24'), cidr('2606:4700::/32')];
  for (const text of ['1.1.1.1', '2606:4700::1111'])
    assert.equal(classify(cidr(text), { ...HOST_NETWORKS, neighbours }), 'private', text);
});

test('an address with an embedded IPv4 address has the group of that one', () => {
  for (const [text, group] of [
    ['64:ff9b::0a00:0001', 'private'],
    ['2002:a9fe:a9fe::1', 'metadata'],
    ['64:ff9b::cb00:7101', null],
    ['64:ff9b::0101:0101', 'public'],
  ] as const)
    assert.equal(classify(cidr(text), HOST_NETWORKS), group, text);
});
