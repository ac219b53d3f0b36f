import type { Group } from '@svc/contract/orchestrator';
import type { Ceiling } from '../policy/ceiling.ts';
import { formatAddress, formatCidr } from '../policy/address.ts';
import { isAbout, isByName, namedRules, rulesFor } from '../policy/decide.ts';
import { GROUP_RANGES } from '../policy/groups.ts';
import type { Destination, ResolvedPolicy, Rule } from '../policy/resolve-policy.ts';
import type { Pin } from '../egress/egress-messages.ts';
import type { Interception } from '../egress/proxied-sandboxes.ts';
import type { ScopeKey } from '../egress/proxies.ts';
import { denyBecause } from './denial-marks.ts';
import { proxyChain, tableName } from './ruleset.ts';

/** The network rules of a slot. */
export interface SlotRules {
  readonly policy: ResolvedPolicy;
  readonly interception: Interception | null;
  /** The scope whose proxy judges connections by name. */
  readonly scope: ScopeKey;
}

/** A slot with a policy of its own; the key names the chain and the sets. */
export interface PolicySlot {
  readonly key: string;
  readonly hostInterface: string;
  /** Whether the sandbox has IPv6, so that rules about it are needed. */
  readonly hasIpv6: boolean;
}

/**
 * The commands that set the policy of a slot, replacing `old` if it had one. Load them in one transaction, so that no packet is judged by
 * half of a policy. `pins` are the initial elements of its rules about names.
 */
export function policyCommands(
  instance: string,
  slot: PolicySlot,
  { policy, interception, scope }: SlotRules,
  pins: readonly Pin[],
  old: ResolvedPolicy | null,
): string {
  const { key, hostInterface } = slot;
  const table = `inet ${tableName(instance)}`;
  const chain = `${table} ${chainName(key)}`;
  const limit = `${table} ${limitName(key)}`;
  const proxied = `${table} ${proxiedName(key)}`;
  return [
    `add chain ${proxied}`,
    `flush chain ${proxied}`,
    `add chain ${chain}`,
    `flush chain ${chain}`,
    ...ceilingCommands(instance, slot, policy, old),
    ...jumpsToCeilings(slot, policy).flatMap((jump) => [
      `add rule ${proxied} ${jump}`,
      `add rule ${chain} ${jump}`,
    ]),
    ...(old === null ? [] : pinSets(slot, old).map(({ name }) => `delete set ${table} ${name}`)),
    ...pinSets(slot, policy).map(
      ({ name, type }) => `add set ${table} ${name} { type ${type}; flags timeout; size ${MAX_PINS}; }`,
    ),
    ...proxiedLines(policy, interception, slot, `goto ${proxyChain(scope)}`).map(
      (line) => `add rule ${proxied} ${line}`,
    ),
    ...quicLines(interception).map((line) => `add rule ${chain} ${line}`),
    ...policy.rules
      .flatMap((rule, index) => ruleLines(rule, index, slot, policy.strict))
      .map((line) => `add rule ${chain} ${line}`),
    `add rule ${chain} ${policy.defaultEgress === 'allow' ? 'accept' : denyBecause('default')}`,
    `add chain ${limit}`,
    `flush chain ${limit}`,
    ...udpLimitLines(policy).map((line) => `add rule ${limit} ${line}`),
    `add rule ${limit} ct count over ${policy.maxConnections} ${denyBecause('too_many_connections')}`,
    `add element ${table} policies { "${hostInterface}" : goto ${chainName(key)} }`,
    `add element ${table} limits { "${hostInterface}" : goto ${limitName(key)} }`,
    `add element ${table} proxied { "${hostInterface}" : jump ${proxiedName(key)} }`,
    ...pinCommands(instance, slot, policy, pins),
    '',
  ].join('\n');
}

export function removePolicyCommands(instance: string, slot: PolicySlot, old: ResolvedPolicy): string {
  const { key, hostInterface } = slot;
  const table = `inet ${tableName(instance)}`;
  return [
    `delete element ${table} policies { "${hostInterface}" }`,
    `delete element ${table} limits { "${hostInterface}" }`,
    `delete element ${table} proxied { "${hostInterface}" }`,
    `delete chain ${table} ${chainName(key)}`,
    `delete chain ${table} ${proxiedName(key)}`,
    `delete chain ${table} ${limitName(key)}`,
    ...old.ceilings.map((_, index) => `delete chain ${table} ${ceilingName(key, index)}`),
    ...pinSets(slot, old).map(({ name }) => `delete set ${table} ${name}`),
    '',
  ].join('\n');
}

/** A chain for each ceiling, which denies packets beyond it and returns for all others. */
function ceilingCommands(
  instance: string,
  slot: PolicySlot,
  { ceilings }: ResolvedPolicy,
  old: ResolvedPolicy | null,
): readonly string[] {
  const chainAt = (index: number) => `inet ${tableName(instance)} ${ceilingName(slot.key, index)}`;
  return [
    ...(old?.ceilings ?? []).map((_, index) => `delete chain ${chainAt(index)}`),
    ...ceilings.flatMap((ceiling, index) => [
      `add chain ${chainAt(index)}`,
      ...ceilingLines(ceiling, slot).map((match) => `add rule ${chainAt(index)} ${match} return`),
      `add rule ${chainAt(index)} ${denyBecause('ceiling')}`,
    ]),
  ];
}

/** The matches for packets below a ceiling. */
export function ceilingLines(
  { groups, ranges }: Ceiling,
  slot: Pick<PolicySlot, 'hasIpv6'>,
): readonly string[] {
  const destinations: readonly Destination[] = [
    ...groups.map((group) => ({ kind: 'group', group }) as const),
    ...ranges.map((range) => ({ kind: 'cidr', range }) as const),
  ];
  // Ceilings contain no names, so no set of the slot is used.
  return destinations.flatMap((destination) => destinationsOf(destination, 0, { key: '', ...slot }));
}

function jumpsToCeilings({ key }: PolicySlot, { ceilings }: ResolvedPolicy): readonly string[] {
  return ceilings.map((_, index) => `jump ${ceilingName(key, index)}`);
}

function ceilingName(key: string, index: number): string {
  return `c${index}_${key}`;
}

/** Adds addresses that a name resolved to, to the sets of the rules about that name. An existing pin gets the new expiry. */
export function pinCommands(
  instance: string,
  { key, hasIpv6 }: Omit<PolicySlot, 'hostInterface'>,
  policy: ResolvedPolicy,
  pins: readonly Pin[],
): readonly string[] {
  return pins.flatMap(({ name, address, seconds }) => {
    if (address.family === 6 && !hasIpv6) return [];
    return rulesFor(policy, name).flatMap((index) => {
      const element = `element inet ${tableName(instance)} ${pinSet(key, index, address.family)}`;
      const text = formatAddress(address);
      return [
        `add ${element} { ${text} }`,
        `delete ${element} { ${text} }`,
        `add ${element} { ${text} timeout ${seconds}s }`,
      ];
    });
  });
}

/** More addresses than the names of a policy resolve to at one time; a sandbox that floods the set loses only its own pins. */
const MAX_PINS = 4096;

function chainName(key: string): string {
  return `p_${key}`;
}

function proxiedName(key: string): string {
  return `x_${key}`;
}

function limitName(key: string): string {
  return `l_${key}`;
}

function pinSet(key: string, index: number, family: 4 | 6): string {
  return `${family === 4 ? 'n' : 'm'}_${key}_${index}`;
}

function pinSets({ key, hasIpv6 }: PolicySlot, policy: ResolvedPolicy) {
  return namedRules(policy).flatMap((index) => [
    { name: pinSet(key, index, 4), type: 'ipv4_addr' },
    ...(hasIpv6 ? [{ name: pinSet(key, index, 6), type: 'ipv6_addr' }] : []),
  ]);
}

/** The matches for an egress rule; several lines when one cannot express it. */
function ruleLines(rule: Rule, index: number, slot: PolicySlot, isStrict: boolean): readonly string[] {
  // A packet contains no name, which strict rules require.
  if (isStrict && rule.action === 'allow' && isByName(rule.destination)) return [];
  const verdict = rule.action === 'allow' ? 'accept' : denyBecause('rule', index);
  return matchesOf(rule, index, slot).map((match) => line(match, verdict));
}

function matchesOf(rule: Rule, index: number, slot: PolicySlot): readonly string[] {
  const transport = isAbout(rule, 'egress') ? transportOf(rule, slot) : null;
  if (transport === null) return [];
  return destinationsOf(rule.destination, index, slot).map((peer) => line(peer, transport));
}

function line(...parts: readonly string[]): string {
  return parts.filter((part) => part !== '').join(' ');
}

/**
 * The matches for TCP connections that go to the proxy: those that a rule about a name could decide by content, and those to intercepted
 * ports. All others are decided by the policy's own chain, by the rule that ended the match here.
 */
function proxiedLines(
  policy: ResolvedPolicy,
  interception: Interception | null,
  slot: PolicySlot,
  toProxy: string,
): readonly string[] {
  if (!isProxied(policy, interception)) return [];
  // Only TCP packets get here. nft allows no second protocol match beside that of a rule.
  const readPorts = interception?.readsPlainHttp === true ? [''] : portsOf('th', interception);
  const read = readPorts.map((ports) => line(ports, toProxy));
  return [
    ...policy.rules.flatMap((rule, index) => {
      if (rule.protocols.length > 0 && !rule.protocols.includes('tcp')) return [];
      if (isByName(rule.destination)) {
        // A name can be denied at any destination.
        const matched = rule.action === 'deny' ? { ...rule, destination: { kind: 'any' as const } } : rule;
        return matchesOf(matched, index, slot).map((match) => line(match, toProxy));
      }
      return matchesOf(rule, index, slot).flatMap((match) => [
        ...(rule.action === 'allow' ? read.map((lead) => line(match, lead)) : []),
        line(match, 'return'),
      ]);
    }),
    ...(policy.defaultEgress === 'allow' ? read : []),
  ];
}

/** Packets of flows that are counted already do not get here. */
function udpLimitLines({ maxUdpConnections }: ResolvedPolicy): readonly string[] {
  if (maxUdpConnections === null) return [];
  return [`meta l4proto udp ct count over ${maxUdpConnections} ${denyBecause('too_many_connections')}`];
}

function quicLines(interception: Interception | null): readonly string[] {
  return interception?.blockQuic === true
    ? portsOf('udp', interception).map((ports) => line(ports, denyBecause('quic')))
    : [];
}

function portsOf(protocol: 'th' | 'udp', interception: Interception | null): readonly string[] {
  const ports = [...new Set(interception?.interceptedPorts ?? [])];
  return ports.length === 0 ? [] : [`${protocol} dport { ${ports.join(', ')} }`];
}

/** Whether any connection of a sandbox can go through the proxy. */
export function isProxied(policy: ResolvedPolicy, interception: Interception | null): boolean {
  return interception !== null || namedRules(policy).length > 0;
}

const PROTOCOL_NAMES = { tcp: 'tcp', udp: 'udp', icmpv4: 'icmp', icmpv6: 'icmpv6' } as const;

/** Null when no packet can match. */
function transportOf({ protocols, ports }: Rule, { hasIpv6 }: PolicySlot): string | null {
  const named = protocols.filter((protocol) => hasIpv6 || protocol !== 'icmpv6');
  if (protocols.length > 0 && named.length === 0) return null;
  if (ports.length === 0) {
    return named.length === 0
      ? ''
      : `meta l4proto { ${named.map((name) => PROTOCOL_NAMES[name]).join(', ')} }`;
  }
  const withPorts =
    named.length === 0 ? ['tcp', 'udp'] : named.filter((name) => name === 'tcp' || name === 'udp');
  if (withPorts.length === 0) return null;
  return `meta l4proto { ${withPorts.join(', ')} } th dport { ${mergedRanges(ports).join(', ')} }`;
}

/** Merges adjacent ranges, which nft refuses in a set. */
function mergedRanges(ports: Rule['ports']): readonly string[] {
  const merged: { start: number; end: number }[] = [];
  for (const { start, end } of ports.toSorted((one, other) => one.start - other.start)) {
    const last = merged.at(-1);
    if (last !== undefined && start <= last.end + 1) last.end = Math.max(last.end, end);
    else merged.push({ start, end });
  }
  return merged.map(({ start, end }) => (start === end ? `${start}` : `${start}-${end}`));
}

function destinationsOf(
  destination: Destination,
  index: number,
  { key, hasIpv6 }: Omit<PolicySlot, 'hostInterface'>,
): readonly string[] {
  const families = hasIpv6 ? ([4, 6] as const) : ([4] as const);
  if (destination.kind === 'any') return [''];
  if (isByName(destination))
    return families.map((family) => `${DADDR[family]} @${pinSet(key, index, family)}`);
  if (destination.kind === 'group')
    return [...GROUP_MATCHES[destination.group], ...(hasIpv6 ? IPV6_GROUP_MATCHES[destination.group] : [])];
  const { range } = destination;
  if (range.family === 6 && !hasIpv6) return [];
  if (range.prefixLength === 0) return [`meta nfproto ipv${range.family}`];
  return [`${DADDR[range.family]} ${formatCidr(range)}`];
}

const DADDR = { 4: 'ip daddr', 6: 'ip6 daddr' } as const;

const ranges = (group: keyof typeof GROUP_RANGES, wanted: 4 | 6 = 4): string =>
  `{ ${GROUP_RANGES[group]
    .filter(({ family }) => family === wanted)
    .map(formatCidr)
    .join(', ')} }`;
const NOT_OURS = 'fib daddr type != local';

/** In the order of `classify`: each match excludes those before it. Packets to 127.0.0.0/8 never leave a sandbox. */
const GROUP_MATCHES: Readonly<Record<Group, readonly string[]>> = {
  loopback: [`ip daddr ${ranges('loopback')}`],
  host: ['fib daddr type local'],
  metadata: [`${NOT_OURS} ip daddr ${ranges('metadata')}`],
  private: [
    `${NOT_OURS} ip daddr ${ranges('private')}`,
    `${NOT_OURS} ip daddr != ${ranges('link_local')} ip daddr != ${ranges('multicast')} ip daddr @neighbours`,
  ],
  link_local: [`${NOT_OURS} ip daddr != ${ranges('metadata')} ip daddr ${ranges('link_local')}`],
  multicast: [`ip daddr ${ranges('multicast')}`],
  public: [`${NOT_OURS} ip daddr != @refused ip daddr != @neighbours`],
};

/** The same for IPv6, except ranges that are closed to all sandboxes, and `host`, whose match covers both families. */
const IPV6_GROUP_MATCHES: Readonly<Record<Group, readonly string[]>> = {
  loopback: [],
  host: [],
  metadata: [`${NOT_OURS} ip6 daddr ${ranges('metadata', 6)}`],
  private: [
    `${NOT_OURS} ip6 daddr != ${ranges('metadata', 6)} ip6 daddr ${ranges('private', 6)}`,
    `${NOT_OURS} ip6 daddr != ${ranges('metadata', 6)} ip6 daddr @neighbours6`,
  ],
  link_local: [],
  multicast: [],
  public: [`${NOT_OURS} ip6 daddr != @refused6 ip6 daddr != @neighbours6`],
};
