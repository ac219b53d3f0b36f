import type { Group } from '@svc/contract/orchestrator';
import { cidr, contains, type Address, type Cidr } from './address.ts';

/** The position of this host in its networks, on which the group of an address depends. */
export interface HostNetworks {
  /** The address of the host and its resolver for the sandbox. */
  readonly gateway: Address;
  /** Every other address of this host. */
  readonly hostAddresses: readonly Address[];
  /** Networks that this host is connected to: their hosts are neighbours, also in public ranges. */
  readonly neighbours: readonly Cidr[];
  /** The address pool of sandboxes, including the gateway. */
  readonly pool: Cidr;
  /** The same for IPv6, if sandboxes have it. */
  readonly ipv6?: { readonly gateway: Address; readonly pool: Cidr };
}

/** Ranges by group, in the order of checks. The packet filter is generated from the same lists. */
export const GROUP_RANGES = {
  metadata: ['169.254.169.254', 'fd00:ec2::254'].map(cidr),
  loopback: ['127.0.0.0/8', '::1'].map(cidr),
  private: ['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', '100.64.0.0/10', 'fc00::/7'].map(cidr),
  link_local: ['169.254.0.0/16', 'fe80::/10'].map(cidr),
  multicast: ['224.0.0.0/4', 'ff00::/8'].map(cidr),
} as const satisfies Partial<Record<Group, readonly Cidr[]>>;

/**
 * Ranges without a group, matched only by `any` and by rules with ranges: the entries of IANA's registries of special-purpose addresses
 * that have no group, and one address of a cloud that looks public and is the host's side of every virtual machine there. Where such a
 * range is routed at all, it is internal.
 * https://www.iana.org/assignments/iana-ipv4-special-registry https://www.iana.org/assignments/iana-ipv6-special-registry
 */
export const RESERVED_RANGES: readonly Cidr[] = [
  '0.0.0.0/8',
  '168.63.129.16',
  '192.0.0.0/24',
  '192.0.2.0/24',
  '192.31.196.0/24',
  '192.52.193.0/24',
  '192.88.99.0/24',
  '192.175.48.0/24',
  '198.18.0.0/15',
  '198.51.100.0/24',
  '203.0.113.0/24',
  '240.0.0.0/4',
  '::/3',
  '2001::/23',
  '2001:db8::/32',
  '2620:4f:8000::/48',
  '3fff::/20',
  '4000::/2',
  '8000::/1',
].map(cidr);

/**
 * The group of an address; null when it has none. Unspecified addresses and those of other sandboxes have no group, and `isReachable` is
 * false for them under any policy.
 */
export function classify(address: Address, hostNetworks: HostNetworks): Group | null {
  if (isGateway(address, hostNetworks)) return 'host';
  if (!isReachable(address, hostNetworks)) return null;
  const inside = embeddedIpv4(address);
  if (inside !== null) return classify(inside, hostNetworks);
  const isIn = (ranges: readonly Cidr[]) => ranges.some((range) => contains(range, address));
  // Before the addresses of this host, which include 127.0.0.0/8: inside, these are the sandbox's own.
  if (isIn(GROUP_RANGES.loopback)) return 'loopback';
  if (hostNetworks.hostAddresses.some((own) => isSame(own, address))) return 'host';
  for (const group of ['metadata', 'private', 'link_local', 'multicast'] as const)
    if (isIn(GROUP_RANGES[group])) return group;
  if (isIn(hostNetworks.neighbours)) return 'private';
  return isIn(RESERVED_RANGES) ? null : 'public';
}

/** Whether an address is public on any host. */
export function isPublicEverywhere(address: Address): boolean {
  const inside = embeddedIpv4(address);
  if (inside !== null) return isPublicEverywhere(inside);
  const ranges = [...Object.values(GROUP_RANGES).flat(), ...RESERVED_RANGES];
  return !ranges.some((range) => contains(range, address));
}

/**
 * Whether a rule can open an address. Sandboxes reach each other only through published ports, so no rule opens their addresses; nor
 * unspecified and broadcast addresses.
 */
export function isReachable(address: Address, hostNetworks: HostNetworks): boolean {
  if (address.value === 0n || isSame(address, BROADCAST)) return false;
  if (isGateway(address, hostNetworks)) return true;
  const { pool, ipv6 } = hostNetworks;
  return !contains(pool, address) && (ipv6 === undefined || !contains(ipv6.pool, address));
}

function isGateway(address: Address, { gateway, ipv6 }: HostNetworks): boolean {
  return isSame(address, gateway) || (ipv6 !== undefined && isSame(address, ipv6.gateway));
}

/**
 * IPv6 ranges that no rule opens: embedded IPv4 addresses (mapped, translated or tunnelled), which would bypass rules about IPv4, and
 * addresses of link scope, because a sandbox shares its link only with its host.
 */
export const CLOSED_IPV6: readonly Cidr[] = ['::/8', '2002::/16', 'fe80::/10', 'fec0::/10', 'ff00::/8'].map(
  cidr,
);

export function isClosedIpv6(address: Address): boolean {
  return CLOSED_IPV6.some((range) => contains(range, address));
}

const BROADCAST: Address = { family: 4, value: 0xffffffffn };

const TRANSLATED = cidr('64:ff9b::/96');
const SIX_TO_FOUR = cidr('2002::/16');

/** The IPv4 address that an IPv6 address embeds by translation or 6to4. */
export function embeddedIpv4(address: Address): Address | null {
  if (contains(TRANSLATED, address)) return { family: 4, value: address.value & 0xffffffffn };
  if (contains(SIX_TO_FOUR, address)) return { family: 4, value: (address.value >> 80n) & 0xffffffffn };
  return null;
}

function isSame(one: Address, other: Address): boolean {
  return one.family === other.family && one.value === other.value;
}
