import { readFileSync } from 'node:fs';
import { DEFAULT_MAX_CONNECTIONS } from '@svc/contract/spec';
import { formatCidr } from '../policy/address.ts';
import type { Ports } from '../egress/egress-messages.ts';
import type { ScopeKey } from '../egress/proxies.ts';
import { CLOSED_PORTS } from '../policy/decide.ts';
import { CLOSED_IPV6, GROUP_RANGES, RESERVED_RANGES } from '../policy/groups.ts';
import { DENIAL_DEFINITIONS, denyBecause } from './denial-marks.ts';
import type { Ipv6Pool } from './ipv6-pool.ts';
import type { SlotLink } from './network.ts';
import { proxyGroup, proxyMark } from './proxy-routing.ts';

export interface RulesetOptions {
  readonly instance: string;
  /** The addresses of the sandboxes, and the first one, which is the resolver's. */
  readonly pool: { readonly cidr: string; readonly gateway: string };
  /** Null when sandboxes have no IPv6. */
  readonly ipv6Pool: Pick<Ipv6Pool, 'range' | 'gateway'> | null;
  readonly links: readonly SlotLink[];
  /** Networks that this host is connected to. */
  readonly neighbours: readonly string[];
  /** Matches of the traffic below the ceiling of this engine; null without a ceiling. */
  readonly ceiling: readonly string[] | null;
  /** Per sandbox and second, each way. */
  readonly maxPackets: number;
  /** The same in MiB; null: no limit. */
  readonly maxMib: number | null;
}

/** Addresses that are not public on any host. */
const NOT_PUBLIC = [...Object.values(GROUP_RANGES).flat(), ...RESERVED_RANGES];
const notPublic = (wanted: 4 | 6) => NOT_PUBLIC.filter(({ family }) => family === wanted).map(formatCidr);
const KBYTES_PER_MIB = 1024;
/** Replaces a missing pool: the unspecified address. */
const NO_ADDRESS = '::';

const STATIC_RULES = readFileSync(new URL('ruleset.nft', import.meta.url), 'utf8');

export function tableName(instance: string): string {
  return `svc_${instance}`;
}

/** The prefix of the names of this engine's host interfaces; no other engine has it, because the instance ends at the dash. */
export function linkPrefix(instance: string): string {
  return `v${instance}-`;
}

/** The same for the links of proxies. Rules about proxies precede those about sandboxes, whose prefix matches these names too. */
export function proxyLinkPrefix(instance: string): string {
  return `${linkPrefix(instance)}-`;
}

/** Adding an existing link and deleting a missing one both succeed. */
export function addLink(instance: string, link: SlotLink): string {
  return elementsOf(link)
    .map((element) => `add element inet ${tableName(instance)} ${element}`)
    .join('; ');
}

export function deleteLink(instance: string, link: SlotLink): string {
  return elementsOf(link)
    .map((element) => `element inet ${tableName(instance)} ${element}`)
    .map((target) => `add ${target}; delete ${target}`)
    .join('; ');
}

export function deleteTable(instance: string): string {
  return `add table inet ${tableName(instance)}; delete table inet ${tableName(instance)}`;
}

/** Redirects queries to the resolver. Until there is one they are dropped. */
export function setResolverPort(instance: string, { ipv4, ipv6 }: Gateways, port: number): string {
  const chain = `inet ${tableName(instance)} resolver`;
  const lead = (family: 'ip' | 'ip6', nfproto: string, to: string) =>
    `add rule ${chain} meta nfproto ${nfproto} meta l4proto { tcp, udp } dnat ${family} to ${to}:${port}`;
  return [
    `flush chain ${chain}`,
    lead('ip', 'ipv4', ipv4),
    ...(ipv6 === null ? [] : [lead('ip6', 'ipv6', `[${ipv6}]`)]),
  ].join('; ');
}

/** The addresses of this host for sandboxes. */
export interface Gateways {
  readonly ipv4: string;
  readonly ipv6: string | null;
}

/** The chain that redirects connections to the proxy of a scope. */
export function proxyChain(scope: ScopeKey): string {
  return `t_${scope}`;
}

/** While a scope has no proxy, packets for it are dropped. */
export function closeProxyChain(instance: string, scope: ScopeKey): string {
  const chain = `inet ${tableName(instance)} ${proxyChain(scope)}`;
  return `add chain ${chain}; flush chain ${chain}; add rule ${chain} ${denyBecause('no_proxy')}`;
}

/**
 * Redirects connections of a scope's sandboxes to its proxy. Redirected connections keep their mark: when the proxy is gone, this host
 * refuses them, and none of their packets reaches the original destination.
 */
export function setProxyPorts(instance: string, gateways: Gateways, scope: ScopeKey, ports: Ports): string {
  const chain = `inet ${tableName(instance)} ${proxyChain(scope)}`;
  const mark = proxyMark(instance);
  const lead = (nfproto: string, to: string) =>
    `add rule ${chain} meta nfproto ${nfproto} meta l4proto tcp tproxy ${to} ct mark set ${mark} meta mark set ${mark} accept`;
  const { ipv6 } = gateways;
  return [
    `add chain ${chain}`,
    `flush chain ${chain}`,
    lead('ipv4', `ip to ${gateways.ipv4}:${ports.ipv4}`),
    ...(ipv6 === null || ports.ipv6 === null ? [] : [lead('ipv6', `ip6 to [${ipv6}]:${ports.ipv6}`)]),
    `add rule ${chain} ${denyBecause('no_proxy')}`,
  ].join('; ');
}

export function removeProxyChain(instance: string, scope: ScopeKey): string {
  const chain = `chain inet ${tableName(instance)} ${proxyChain(scope)}`;
  return `add ${chain}; delete ${chain}`;
}

/** Replaces the networks in one transaction, so that no packet meets an empty set. */
export function setNeighbours(instance: string, networks: readonly string[]): string {
  const [ipv6 = [], ipv4 = []] = [true, false].map((is) =>
    networks.filter((each) => each.includes(':') === is),
  );
  return Object.entries({ neighbours: ipv4, neighbours6: ipv6 })
    .flatMap(([name, ranges]) => {
      const place = `inet ${tableName(instance)} ${name}`;
      return [
        `flush set ${place}`,
        ...(ranges.length === 0 ? [] : [`add element ${place} { ${ranges.join(', ')} }`]),
      ];
    })
    .join('; ');
}

/** The whole ruleset, which replaces that of an earlier engine. */
export function ruleset(options: RulesetOptions): string {
  const { instance, pool, ipv6Pool, links, neighbours, ceiling, maxPackets, maxMib } = options;
  const pool6 = ipv6Pool === null ? NO_ADDRESS : formatCidr(ipv6Pool.range);
  return [
    `define ours = "${linkPrefix(instance)}*"`,
    `define proxy_links = "${proxyLinkPrefix(instance)}*"`,
    `define pool = ${pool.cidr}`,
    `define gateway = ${pool.gateway}`,
    `define not_public = { ${[...notPublic(4), pool.cidr].join(', ')} }`,
    `define pool6 = ${pool6}`,
    `define gateway6 = ${ipv6Pool?.gateway ?? NO_ADDRESS}`,
    `define not_public6 = { ${[...notPublic(6), pool6].join(', ')} }`,
    `define closed6 = { ${CLOSED_IPV6.map(formatCidr).join(', ')} }`,
    `define closed_tcp = { ${CLOSED_PORTS.tcp.join(', ')} }`,
    `define closed_udp = { ${CLOSED_PORTS.udp.join(', ')} }`,
    `define proxy_mark = ${proxyMark(instance)}`,
    `define proxies = ${proxyGroup(instance)}`,
    ...DENIAL_DEFINITIONS,
    deleteTable(instance),
    // nft accepts no definitions in place of these numbers.
    (maxMib === null ? STATIC_RULES.replaceAll(/^.*\$max_kbytes.*\n/gm, '') : STATIC_RULES)
      .replaceAll('svc_instance', tableName(instance))
      .replaceAll('$max_connections', String(DEFAULT_MAX_CONNECTIONS))
      .replaceAll('$max_packets', String(maxPackets))
      .replaceAll('$max_kbytes', String((maxMib ?? 0) * KBYTES_PER_MIB)),
    ...links.map((link) => addLink(instance, link)),
    setNeighbours(instance, neighbours),
    ...(ceiling === null ? [] : [...ceiling.map((match) => `${match} return`), 'reject with tcp reset']).map(
      (rule) => `add rule inet ${tableName(instance)} proxy_ceiling ${rule}`,
    ),
    '',
  ].join('\n');
}

function elementsOf({ hostInterface, address, ipv6 }: SlotLink): readonly string[] {
  return [
    `slots { "${hostInterface}" . ${address} }`,
    ...(ipv6 === undefined ? [] : [`slots6 { "${hostInterface}" . ${ipv6.address} }`]),
  ];
}
