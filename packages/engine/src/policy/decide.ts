import type { Action, Direction, Protocol } from '@svc/contract/orchestrator';
import { contains, type Address } from './address.ts';
import { isWithin } from './ceiling.ts';
import { classify, isClosedIpv6, isReachable, type HostNetworks } from './groups.ts';
import { hasSuffix, normalizeName } from './names.ts';
import type { Destination, ResolvedPolicy, Rule } from './resolve-policy.ts';

/** A connection, or a packet of a protocol without connections. */
export interface Flow {
  readonly direction: Direction;
  /** The destination, or for ingress the peer. */
  readonly address: Address;
  /** The port of the service: the peer's for egress, the sandbox's for ingress. Ignored for ICMP. */
  readonly port: number;
  readonly protocol: Protocol;
  /** Names that this sandbox resolved to the address and that have not expired. */
  readonly names: readonly string[];
  /** The name in the connection (SNI, Host); absent when it has none, or was not read yet. */
  readonly sni?: string;
}

export interface Decision {
  readonly action: Action;
  /** Index of the rule that decided; null for the default, and for addresses that no rule can open. */
  readonly rule: number | null;
  /** A rule about a name was skipped, so the name in the connection (`sni`) may change the decision. */
  readonly needsName: boolean;
}

/** The first rule that matches decides; without one, the default does. */
export function decide(policy: ResolvedPolicy, flow: Flow, hostNetworks: HostNetworks): Decision {
  const isEgress = flow.direction === 'egress';
  const isOpenable = isReachable(flow.address, hostNetworks) && !isClosedIpv6(flow.address);
  if (isEgress && (!isOpenable || isClosed(flow) || isBeyondCeiling(policy, flow.address, hostNetworks)))
    return { action: 'deny', rule: null, needsName: false };
  let needsName = false;
  for (const [index, rule] of policy.rules.entries()) {
    if (!isAbout(rule, flow.direction) || !fitsTransport(rule, flow)) continue;
    if (isByName(rule.destination)) {
      // Rules about names do not apply to ingress.
      if (!isEgress) continue;
      needsName ||= couldNameDecide(rule, flow);
      if (matchesName(policy, rule, flow)) return { action: rule.action, rule: index, needsName };
    } else if (matchesAddress(rule.destination, flow.address, hostNetworks))
      return { action: rule.action, rule: index, needsName };
  }
  return { action: isEgress ? policy.defaultEgress : policy.defaultIngress, rule: null, needsName };
}

export function isBeyondCeiling(
  { ceilings }: Pick<ResolvedPolicy, 'ceilings'>,
  address: Address,
  hostNetworks: HostNetworks,
): boolean {
  return !ceilings.every((ceiling) => isWithin(ceiling, address, hostNetworks));
}

/**
 * Whether a sandbox may resolve a name over `protocol`. Rules about names match with any protocols and ports; `any` and `host` match the
 * question as a packet to port 53 of the host; rules about addresses never match.
 */
export function decideName(
  policy: ResolvedPolicy,
  name: string,
  protocol: 'tcp' | 'udp',
): Omit<Decision, 'needsName'> {
  const asked = normalizeName(name);
  for (const [index, rule] of policy.rules.entries()) {
    if (!isAbout(rule, 'egress')) continue;
    const { destination } = rule;
    const isToResolver =
      destination.kind === 'any' || (destination.kind === 'group' && destination.group === 'host');
    const matches = isByName(destination)
      ? nameFits(destination, asked)
      : isToResolver && fitsTransport(rule, { protocol, port: DNS_PORT });
    if (matches) return { action: rule.action, rule: index };
  }
  return { action: policy.defaultEgress, rule: null };
}

/**
 * Whether an answer may contain `address`. With rebinding protection only public addresses are allowed, and those that a rule about
 * addresses alone (a range or group, no ports) allows, because its author meant them. Defaults, `any` and rules with ports do not count.
 */
export function mayAnswer(policy: ResolvedPolicy, address: Address, hostNetworks: HostNetworks): boolean {
  if (!policy.dns.rebindProtection || classify(address, hostNetworks) === 'public') return true;
  const rule = policy.rules.find(
    ({ destination, ports, ...each }) =>
      isAbout(each, 'egress') &&
      ports.length === 0 &&
      (destination.kind === 'cidr' || destination.kind === 'group') &&
      matchesAddress(destination, address, hostNetworks),
  );
  return rule?.action === 'allow';
}

/** Indexes of the rules about names. Ingress rules have no names. */
export function namedRules(policy: ResolvedPolicy): readonly number[] {
  return policy.rules.flatMap((rule, index) =>
    isByName(rule.destination) && isAbout(rule, 'egress') ? [index] : [],
  );
}

/** The rules of `namedRules` that match `name`: answers to it are kept for them. */
export function rulesFor(policy: ResolvedPolicy, name: string): readonly number[] {
  const asked = normalizeName(name);
  return namedRules(policy).filter((index) => {
    const destination = policy.rules[index]?.destination;
    return destination !== undefined && isByName(destination) && nameFits(destination, asked);
  });
}

const DNS_PORT = 53;

/**
 * Ports of name services that bypass the resolver, closed to all sandboxes: DNS over TLS and QUIC; NetBIOS, mDNS and LLMNR. The packet
 * filter has the same list.
 */
export const CLOSED_PORTS = { tcp: [853], udp: [137, 138, 853, 5353, 5355] } as const;

export function isClosed({ protocol, port }: Pick<Flow, 'protocol' | 'port'>): boolean {
  const closed: readonly number[] = protocol === 'tcp' || protocol === 'udp' ? CLOSED_PORTS[protocol] : [];
  return closed.includes(port);
}

type ByName = Extract<Destination, { readonly name: string }>;

export function isByName(destination: Destination): destination is ByName {
  return destination.kind === 'domain' || destination.kind === 'suffix';
}

function nameFits(destination: ByName, name: string): boolean {
  return destination.kind === 'domain' ? name === destination.name : hasSuffix(name, destination.name);
}

export function isAbout(rule: Pick<Rule, 'direction'>, direction: Direction): boolean {
  return rule.direction === 'any' || rule.direction === direction;
}

function fitsTransport(
  { protocols, ports }: Rule,
  { protocol, port }: Pick<Flow, 'protocol' | 'port'>,
): boolean {
  if (protocols.length > 0 && !protocols.includes(protocol)) return false;
  if (ports.length === 0) return true;
  const hasPorts = protocol === 'tcp' || protocol === 'udp';
  return hasPorts && ports.some(({ start, end }) => start <= port && port <= end);
}

function matchesAddress(
  destination: Exclude<Destination, ByName>,
  address: Address,
  hostNetworks: HostNetworks,
): boolean {
  if (destination.kind === 'any') return address.value !== 0n;
  if (destination.kind === 'cidr') return contains(destination.range, address);
  return classify(address, hostNetworks) === destination.group;
}

/**
 * A name in the connection is enough to deny it; to allow it, the sandbox must also have resolved that name to this address. A connection
 * without a name is judged by the names that the sandbox resolved to the address.
 */
function matchesName(policy: ResolvedPolicy, rule: Rule, { names, sni }: Flow): boolean {
  const { destination, action } = rule;
  if (!isByName(destination)) return false;
  const pinned = names.map(normalizeName);
  if (sni === undefined) {
    if (action === 'allow' && policy.strict) return false;
    return pinned.some((name) => nameFits(destination, name));
  }
  const said = normalizeName(sni);
  return nameFits(destination, said) && (action === 'deny' || pinned.includes(said));
}

function couldNameDecide(rule: Rule, { protocol, sni, names }: Flow): boolean {
  if (protocol !== 'tcp' || sni !== undefined) return false;
  const { destination } = rule;
  return (
    rule.action === 'deny' ||
    (isByName(destination) && names.some((name) => nameFits(destination, normalizeName(name))))
  );
}
