import { readFileSync } from 'node:fs';
import { DEFAULT_MAX_CONNECTIONS } from '@svc/contract/spec';
import { formatCidr } from '../policy/address.ts';
import { CLOSED_PORTS } from '../policy/decide.ts';
import { GROUP_RANGES, RESERVED_RANGES } from '../policy/groups.ts';
import { DENIAL_DEFINITIONS, denyBecause } from './denial-marks.ts';
import type { SlotLink } from './network.ts';
import { proxyMark } from './proxy-routing.ts';

export interface RulesetOptions {
  readonly instance: string;
  /** Addresses of the sandboxes, and the first one, where they find the resolver. */
  readonly pool: { readonly cidr: string; readonly gateway: string };
  readonly links: readonly SlotLink[];
  /** Networks that this host is part of. */
  readonly neighbours: readonly string[];
  /** Of one sandbox in a second, each way. */
  readonly maxPackets: number;
}

/** Addresses that are not public wherever this host stands. */
const NOT_PUBLIC_IPV4 = [...Object.values(GROUP_RANGES).flat(), ...RESERVED_RANGES]
  .filter(({ family }) => family === 4)
  .map(formatCidr);

const STATIC_RULES = readFileSync(new URL('ruleset.nft', import.meta.url), 'utf8');

export function tableName(instance: string): string {
  return `svc_${instance}`;
}

/** Every host interface of this engine's sandboxes starts like this, and none of another engine: ids end at the dash. */
export function linkPrefix(instance: string): string {
  return `v${instance}-`;
}

/** Adding what is there, and deleting what is not, both succeed. */
export function addLink(instance: string, link: SlotLink): string {
  return `add element inet ${tableName(instance)} slots { ${element(link)} }`;
}

export function deleteLink(instance: string, link: SlotLink): string {
  const target = `element inet ${tableName(instance)} slots { ${element(link)} }`;
  return `add ${target}; delete ${target}`;
}

export function deleteTable(instance: string): string {
  return `add table inet ${tableName(instance)}; delete table inet ${tableName(instance)}`;
}

/** Sends questions to the egress process. Until there is one they are dropped. */
export function setResolverPort(instance: string, gateway: string, port: number): string {
  const chain = `inet ${tableName(instance)} resolver`;
  return `flush chain ${chain}; add rule ${chain} meta l4proto { tcp, udp } dnat ip to ${gateway}:${port}`;
}

/** Sends connections that sandboxes open to others to the proxy. Until there is one they are dropped; null: there is none. */
export function setProxyPort(instance: string, gateway: string, port: number | null): string {
  const chain = `inet ${tableName(instance)} to_proxy`;
  const mark = proxyMark(instance);
  const lead = `meta l4proto tcp tproxy ip to ${gateway}:${port} ct mark set ${mark} meta mark set ${mark} accept`;
  return [
    `flush chain ${chain}`,
    ...(port === null ? [] : [`add rule ${chain} ${lead}`]),
    `add rule ${chain} ${denyBecause('no_proxy')}`,
  ].join('; ');
}

/** In one transaction, so that no packet meets an empty set. */
export function setNeighbours(instance: string, networks: readonly string[]): string {
  const set = `set inet ${tableName(instance)} neighbours`;
  const elements = `element inet ${tableName(instance)} neighbours { ${networks.join(', ')} }`;
  return networks.length === 0 ? `flush ${set}` : `flush ${set}; add ${elements}`;
}

/** The whole policy, to be loaded in place of what an earlier engine left. */
export function ruleset({ instance, pool, links, neighbours, maxPackets }: RulesetOptions): string {
  return [
    `define ours = "${linkPrefix(instance)}*"`,
    `define pool = ${pool.cidr}`,
    `define gateway = ${pool.gateway}`,
    `define not_public = { ${[...NOT_PUBLIC_IPV4, pool.cidr].join(', ')} }`,
    `define closed_tcp = { ${CLOSED_PORTS.tcp.join(', ')} }`,
    `define closed_udp = { ${CLOSED_PORTS.udp.join(', ')} }`,
    `define proxy_mark = ${proxyMark(instance)}`,
    ...DENIAL_DEFINITIONS,
    deleteTable(instance),
    // nft takes no definition in place of these numbers.
    STATIC_RULES.replaceAll('svc_instance', tableName(instance))
      .replaceAll('$max_connections', String(DEFAULT_MAX_CONNECTIONS))
      .replaceAll('$max_packets', String(maxPackets)),
    ...links.map((link) => addLink(instance, link)),
    setNeighbours(instance, neighbours),
    '',
  ].join('\n');
}

function element(link: SlotLink): string {
  return `"${link.hostInterface}" . ${link.address}`;
}
