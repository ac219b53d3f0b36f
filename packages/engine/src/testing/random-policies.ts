import type { NetworkPolicy } from '@svc/contract';
import fc from 'fast-check';

/** Addresses of every group, and their neighbours on both sides of a border. */
export const PEERS = (
  '93.184.215.14 1.1.1.1 9.255.255.255 11.0.0.0 172.15.255.255 172.32.0.0 223.255.255.255 10.0.0.1 ' +
  '10.255.255.255 172.16.0.1 172.31.255.255 192.168.0.1 100.64.0.1 100.127.255.255 100.63.255.255 ' +
  '100.128.0.0 169.254.169.254 169.254.0.1 169.253.255.255 169.255.0.0 172.30.0.1 172.30.0.9 ' +
  '192.168.7.5 192.168.7.6 8.8.4.4 8.8.4.7 8.8.5.1 127.0.0.1 224.0.0.251 240.0.0.1 198.51.100.7 0.0.0.0 ' +
  '0.0.0.1 168.63.129.16'
).split(' ');

/** The same for IPv6, written out. */
export const IPV6_PEERS = (
  '2a00:77:0:0:0:0:0:1 2606:4700:0:0:0:0:0:1 fd00:ec2:0:0:0:0:0:254 fd00:ec2:0:0:0:0:0:255 fc00:0:0:0:0:0:0:1 ' +
  '2001:db8:0:0:0:0:0:1 2001:200:0:0:0:0:0:1 3fff:0:0:0:0:0:0:1 4000:0:0:0:0:0:0:1 64:ff9b:0:0:0:0:808:808 ' +
  '2002:808:808:0:0:0:0:1 fe80:0:0:0:0:0:0:1 fec0:0:0:0:0:0:0:1 100:0:0:0:0:0:0:1'
).split(' ');

export const NAMES = [
  'example.com',
  'a.example.com',
  'b.a.example.com',
  'badexample.com',
  'other.org',
  'com',
];

const ranges = [
  '10.0.0.0/8',
  '93.184.215.0/24',
  '1.1.1.1/32',
  '0.0.0.0/0',
  '172.16.0.0/12',
  '8.0.0.0/8',
  '169.254.0.0/16',
  '2a00:77:0:0:0:0:0:0/32',
  '0:0:0:0:0:0:0:0/0',
  'fc00:0:0:0:0:0:0:0/7',
  '2002:0:0:0:0:0:0:0/16',
];
const groups = ['public', 'loopback', 'private', 'link_local', 'metadata', 'multicast', 'host'] as const;

const addressDestinations = fc.oneof(
  fc.constant('any' as const),
  fc.constantFrom(...ranges).map((cidr) => ({ cidr })),
  fc.constantFrom(...groups).map((group) => ({ group })),
);
const nameDestinations = (names: readonly string[]) =>
  fc.oneof(
    fc.constantFrom(...names).map((domain) => ({ domain })),
    fc.constantFrom(...names).map((domain_suffix) => ({ domain_suffix })),
  );

const portRanges = fc
  .tuple(fc.constantFrom(0, 22, 53, 80, 443), fc.constantFrom(0, 1, 400, 65_000))
  .map(([start, more]) => ({ start, end: Math.min(65_535, start + more) }));

function policiesOver(
  destinations: fc.Arbitrary<NonNullable<NetworkPolicy['rules']>[number]['destination']>,
): fc.Arbitrary<NetworkPolicy> {
  const action = fc.constantFrom('allow' as const, 'deny' as const);
  const rule = fc.record({
    direction: fc.constantFrom('egress' as const, 'egress' as const, 'ingress' as const, 'any' as const),
    action,
    destination: destinations,
    protocols: fc.subarray(['tcp' as const, 'udp' as const, 'icmpv4' as const, 'icmpv6' as const], {
      maxLength: 2,
    }),
    ports: fc.array(portRanges, { maxLength: 2 }),
  });
  return fc.record({
    default_egress: action,
    default_ingress: action,
    rules: fc.array(rule, { maxLength: 8 }),
  });
}

export const policiesNaming = (names: readonly string[]): fc.Arbitrary<NetworkPolicy> =>
  policiesOver(fc.oneof(addressDestinations, nameDestinations(names)));
export const policies = policiesNaming(NAMES);
/** Policies that the packet filter enforces alone. */
export const addressPolicies = policiesOver(addressDestinations);
