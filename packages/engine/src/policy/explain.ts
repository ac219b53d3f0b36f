import type { Network } from '@svc/contract';
import { PlatformError } from '@svc/contract/errors';
import type { ConsideredAddress, Explanation, Question } from '@svc/contract/orchestrator';
import { cidr, contains, formatAddress, parseAddress, type Address } from './address.ts';
import type { Ceiling } from './ceiling.ts';
import { decide, decideName, isBeyondCeiling, isByName, isClosed } from './decide.ts';
import { classify, isClosedIpv6, isReachable, type HostNetworks } from './groups.ts';
import { isHostName, normalizeName } from './names.ts';
import { isIntercepted, readPorts } from './read-ports.ts';
import { resolvePolicy, type ResolvedPolicy } from './resolve-policy.ts';
import { ruleAt, sentence } from './sentence.ts';

/** A name that a sandbox has resolved, with its address. */
export interface KnownName {
  readonly name: string;
  readonly address: Address;
}

const DNS_PORT = 53;

type Verdict = Pick<ConsideredAddress, 'action' | 'decidedBy' | 'rule'>;

/**
 * Tells which rule decides about a connection, and why, with the packet filter's model. A name with several addresses is allowed when each
 * of them is. @throws PlatformError `invalid_request` naming the field
 */
export function explain(
  network: Network | undefined,
  question: Question,
  known: readonly KnownName[],
  hostNetworks: HostNetworks,
  ceilings: readonly Ceiling[] = [],
): Explanation {
  const policy = resolvePolicy(network, ceilings);
  if (question.direction === 'ingress') return explainIngress(network, policy, question, hostNetworks);
  const hasIpv6 = hostNetworks.ipv6 !== undefined;
  const reached = hasIpv6 ? known : known.filter(({ address }) => address.family === 4);
  const { name, addresses, isAssumed } = placesOf(question, reached, policy);
  const considered = addresses.map((address) => {
    const text = formatAddress(address);
    const led = known.filter((pin) => formatAddress(pin.address) === text).map((pin) => pin.name);
    const names = isAssumed && name !== null ? [name] : led;
    const verdict = judge(network, policy, question, { address, names }, hostNetworks);
    return { address: text, group: classify(address, hostNetworks), ...verdict };
  });
  const verdict =
    judgeFirst(network, policy, question, name) ??
    considered.find(({ action }) => action === 'deny') ??
    considered[0];
  if (verdict === undefined) throw new Error('a host without an address was not refused');
  const rule = ruleAt(network, verdict.rule);
  const decider = rule === null ? undefined : policy.rules[rule.index];
  return {
    action: verdict.action,
    decidedBy: verdict.decidedBy,
    rule,
    isByName: decider !== undefined && isByName(decider.destination),
    reason: `${sentence({ ...factsOf(verdict, question), rule, address: placeLedTo(verdict, isAssumed) })}${noteOf(verdict, isAssumed)}`,
    addresses: isAssumed ? [] : considered,
    isAssumed,
  };
}

/** A peer is known by its address only, so rules about names do not apply. */
function explainIngress(
  network: Network | undefined,
  policy: ResolvedPolicy,
  question: Question,
  hostNetworks: HostNetworks,
): Explanation {
  const { host, port, protocol } = question;
  const address = parseAddress(host);
  if (address === null) throw invalid('host', 'must be the address of the connecting client');
  if (protocol !== 'tcp' && protocol !== 'udp') throw invalid('protocol', 'must be tcp or udp, as ports are');
  if (port === 0) throw invalid('port', 'is needed, from 1 to 65535: the one inside');
  const outside = seenFromPorts(hostNetworks);
  const flow = { direction: 'ingress', address, port, protocol, names: [] } as const;
  const decided = decide(policy, flow, outside);
  const verdict: Verdict =
    network?.enabled === false
      ? { action: 'deny', decidedBy: 'no_network', rule: null }
      : { ...decided, decidedBy: decided.rule === null ? 'default' : 'rule' };
  const { action, decidedBy } = verdict;
  const rule = ruleAt(network, verdict.rule);
  const judged = { address: formatAddress(address), group: classify(address, outside) };
  return {
    action,
    decidedBy,
    rule,
    isByName: false,
    reason: sentence({ ...factsOf(verdict, question), rule, address: null }),
    addresses: [{ ...judged, action, decidedBy, rule: verdict.rule }],
    isAssumed: false,
  };
}

/**
 * The host networks for peers of published ports, who connect to this host: for them the gateway and the addresses of sandboxes have no
 * special meaning.
 */
export function seenFromPorts({
  hostAddresses,
  neighbours,
}: Omit<HostNetworks, 'gateway' | 'pool'>): HostNetworks {
  const nowhere = { family: 4, value: 0n } as const;
  return { gateway: nowhere, pool: { ...nowhere, prefixLength: 32 }, hostAddresses, neighbours };
}

function factsOf({ action, decidedBy }: Verdict, { direction = 'egress', host, port, protocol }: Question) {
  const hasPorts = protocol === 'tcp' || protocol === 'udp';
  return { action, decidedBy, direction, host, port: hasPorts ? port : null, protocol };
}

function placeLedTo(verdict: Verdict & { readonly address?: string }, isAssumed: boolean): string | null {
  return isAssumed ? null : (verdict.address ?? null);
}

function noteOf({ decidedBy }: Verdict, isAssumed: boolean): string {
  return isAssumed && (decidedBy === 'rule' || decidedBy === 'default') ? NOT_RESOLVED : '';
}

const NOT_RESOLVED =
  '; the sandbox has not resolved the name, so this holds for any public address that it leads to';

interface Places {
  /** Null for an address. */
  readonly name: string | null;
  readonly addresses: readonly Address[];
  readonly isAssumed: boolean;
}

/** The addresses of a host as this sandbox resolves it. */
function placesOf(
  { host, port, protocol }: Question,
  known: readonly KnownName[],
  policy: ResolvedPolicy,
): Places {
  if (port === 0 && (protocol === 'tcp' || protocol === 'udp'))
    throw invalid('port', `is needed for ${protocol}, from 1 to 65535`);
  const address = parseAddress(host);
  if (address !== null) return { name: null, addresses: [address], isAssumed: false };
  const name = normalizeName(host);
  if (!isHostName(name)) throw invalid('host', 'must be a name such as example.com, or an address');
  const addresses = known.filter((pin) => normalizeName(pin.name) === name).map((pin) => pin.address);
  return addresses.length > 0
    ? { name, addresses, isAssumed: false }
    : { name, addresses: [somePublicAddress(policy)], isAssumed: true };
}

const SOME_PUBLIC_RANGES = ['9.9.9.9/32', '23.1.2.3/32', '52.1.2.3/32', '93.1.2.3/32', '185.1.2.3/32'].map(
  cidr,
);

/** A public address that only rules for all addresses match. */
function somePublicAddress({ rules }: ResolvedPolicy): Address {
  const isMeant = (address: Address) =>
    rules.some(
      ({ destination }) =>
        destination.kind === 'cidr' &&
        destination.range.prefixLength > 0 &&
        contains(destination.range, address),
    );
  const { family, value } = SOME_PUBLIC_RANGES.find((range) => !isMeant(range)) ?? cidr('9.9.9.9');
  return { family, value };
}

/** The checks that do not depend on the address. */
function judgeFirst(
  network: Network | undefined,
  policy: ResolvedPolicy,
  { port, protocol }: Question,
  name: string | null,
): Verdict | undefined {
  const hasPorts = protocol === 'tcp' || protocol === 'udp';
  if (network?.enabled === false) return { action: 'deny', decidedBy: 'no_network', rule: null };
  if (hasPorts && port === DNS_PORT) return { action: 'allow', decidedBy: 'resolver', rule: null };
  if (name === null) return undefined;
  const asked = decideName(policy, name, 'udp');
  return asked.action === 'deny' ? { ...asked, decidedBy: 'name' } : undefined;
}

function judge(
  network: Network | undefined,
  policy: ResolvedPolicy,
  { port, protocol }: Question,
  { address, names }: { readonly address: Address; readonly names: readonly string[] },
  hostNetworks: HostNetworks,
): Verdict {
  if (isClosed({ protocol, port })) return { action: 'deny', decidedBy: 'closed_port', rule: null };
  const isIpv6 = address.family === 6 || protocol === 'icmpv6';
  const isOutOfReach = !isReachable(address, hostNetworks) || isClosedIpv6(address);
  if ((isIpv6 && hostNetworks.ipv6 === undefined) || isOutOfReach)
    return { action: 'deny', decidedBy: 'out_of_reach', rule: null };
  if (isBeyondCeiling(policy, address, hostNetworks))
    return { action: 'deny', decidedBy: 'ceiling', rule: null };
  if (protocol === 'udp' && isClosedToUdp(network, port))
    return { action: 'deny', decidedBy: 'quic', rule: null };
  const { action, rule } = decide(
    policy,
    { direction: 'egress', address, port, protocol, names },
    hostNetworks,
  );
  return { action, rule, decidedBy: rule === null ? 'default' : 'rule' };
}

function isClosedToUdp(network: Network | undefined, port: number): boolean {
  if (network === undefined || !isIntercepted(network)) return false;
  const { interceptedPorts, blockQuic } = readPorts(network);
  return blockQuic && interceptedPorts.includes(port);
}

function invalid(field: string, reason: string): PlatformError {
  return new PlatformError('invalid_request', `${field}: ${reason}`, { details: { field, reason } });
}
