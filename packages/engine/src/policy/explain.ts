import type { Network, NetworkPolicy } from '@svc/contract';
import { PlatformError } from '@svc/contract/errors';
import { DEFAULT_POLICY } from '@svc/contract/spec';
import { cidr, contains, formatAddress, parseAddress, type Address } from './address.ts';
import { decide, decideName, isByName, isClosed } from './decide.ts';
import { classify, isReachable, type Group, type Surroundings } from './groups.ts';
import { isHostName, normalizeName } from './names.ts';
import { resolvePolicy, type Action, type Protocol, type ResolvedPolicy } from './resolve-policy.ts';

/** What somebody would like to know: may the sandbox open this connection? */
export interface Question {
  /** A name or an address. */
  readonly host: string;
  /** Of no meaning to ICMP. */
  readonly port: number;
  readonly protocol: Protocol;
}

/** What a sandbox has resolved. */
export interface KnownName {
  readonly name: string;
  readonly address: Address;
}

export type DecidedBy =
  | 'rule'
  | 'default'
  /** The sandbox has no network at all. */
  | 'no_network'
  /** The name itself may not be asked for. */
  | 'name'
  /** Port 53 is the resolver's, wherever a question was sent; it judges the name that is asked for. */
  | 'resolver'
  /** A way to resolve names past the resolver, closed to everybody. */
  | 'closed_port'
  /** An address that no rule opens: IPv6, another sandbox, or nobody's. */
  | 'out_of_reach';

export interface DecidingRule {
  readonly index: number;
  readonly rule: NonNullable<NetworkPolicy['rules']>[number];
}

export interface ConsideredAddress {
  readonly address: string;
  readonly group: Group | null;
  readonly action: Action;
  readonly rule: number | null;
  readonly decidedBy: DecidedBy;
}

export interface Explanation {
  readonly action: Action;
  readonly decidedBy: DecidedBy;
  readonly rule: DecidingRule | null;
  /** The rule is about a name. */
  readonly isByName: boolean;
  /** A sentence. */
  readonly reason: string;
  /** Where the name leads, as far as this sandbox has resolved it; or the one address that was asked about. */
  readonly addresses: readonly ConsideredAddress[];
  /** Nothing is known of where the name leads, so it was decided as for any public address. */
  readonly isAssumed: boolean;
}

const DNS_PORT = 53;

type Verdict = Pick<ConsideredAddress, 'action' | 'decidedBy' | 'rule'>;

/**
 * Which rule decides about a connection, and why, by the same model as the packet filter. A name that leads to several addresses is
 * allowed when each of them is. @throws PlatformError `invalid_request` naming the field
 */
export function explain(
  network: Network | undefined,
  question: Question,
  known: readonly KnownName[],
  surroundings: Surroundings,
): Explanation {
  const policy = resolvePolicy(network);
  const { name, addresses, isAssumed } = placesOf(question, known, policy);
  const considered = addresses.map((address) => {
    const text = formatAddress(address);
    const led = known.filter((pin) => formatAddress(pin.address) === text).map((pin) => pin.name);
    const names = isAssumed && name !== null ? [name] : led;
    const verdict = judge(policy, question, { address, names }, surroundings);
    return { address: text, group: classify(address, surroundings), ...verdict };
  });
  const verdict =
    judgeFirst(network, policy, question, name) ??
    considered.find(({ action }) => action === 'deny') ??
    considered[0];
  if (verdict === undefined) throw new Error('a host without an address was not refused');
  const rule = toDecidingRule(network, verdict.rule);
  const decider = rule === null ? undefined : policy.rules[rule.index];
  return {
    action: verdict.action,
    decidedBy: verdict.decidedBy,
    rule,
    isByName: decider !== undefined && isByName(decider.destination),
    reason: sentence(verdict, rule, question, isAssumed),
    addresses: isAssumed ? [] : considered,
    isAssumed,
  };
}

function toDecidingRule(network: Network | undefined, index: number | null): DecidingRule | null {
  const { rules = [] }: NetworkPolicy = network?.policy ?? DEFAULT_POLICY;
  const rule = index === null ? undefined : rules[index];
  return index === null || rule === undefined ? null : { index, rule };
}

interface Places {
  /** Null when it is an address. */
  readonly name: string | null;
  readonly addresses: readonly Address[];
  readonly isAssumed: boolean;
}

/** The addresses that a host means to this sandbox. */
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
  // Sandboxes have no IPv6, so what a name leads to there is never reached.
  const addresses = known
    .filter((pin) => pin.address.family === 4 && normalizeName(pin.name) === name)
    .map((pin) => pin.address);
  return addresses.length > 0
    ? { name, addresses, isAssumed: false }
    : { name, addresses: [somePublicAddress(policy)], isAssumed: true };
}

const SOME_PUBLIC_RANGES = ['9.9.9.9/32', '23.1.2.3/32', '52.1.2.3/32', '93.1.2.3/32', '185.1.2.3/32'].map(
  cidr,
);

/** One that no range of the policy is about, but those that are about everything. */
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

/** What holds whatever the address. */
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
  policy: ResolvedPolicy,
  { port, protocol }: Question,
  { address, names }: { readonly address: Address; readonly names: readonly string[] },
  surroundings: Surroundings,
): Verdict {
  if (isClosed({ protocol, port })) return { action: 'deny', decidedBy: 'closed_port', rule: null };
  if (address.family === 6 || protocol === 'icmpv6' || !isReachable(address, surroundings))
    return { action: 'deny', decidedBy: 'out_of_reach', rule: null };
  const { action, rule } = decide(
    policy,
    { direction: 'egress', address, port, protocol, names },
    surroundings,
  );
  return { action, rule, decidedBy: rule === null ? 'default' : 'rule' };
}

function sentence(
  { action, decidedBy, address }: Verdict & { readonly address?: string },
  rule: DecidingRule | null,
  { host, port, protocol }: Question,
  isAssumed: boolean,
): string {
  const place =
    protocol === 'tcp' || protocol === 'udp' ? `${host}:${port}/${protocol}` : `${host}/${protocol}`;
  const through = address === undefined || address === host || isAssumed ? '' : ` (at ${address})`;
  const start = `${place}${through} is ${action === 'allow' ? 'allowed' : 'denied'}`;
  const note = isAssumed && (decidedBy === 'rule' || decidedBy === 'default') ? NOT_RESOLVED : '';
  const named = rule === null ? 'default_egress' : `rule ${rule.index}, ${describeRule(rule.rule)}`;
  switch (decidedBy) {
    case 'rule':
      return `${start} by ${named}, the first that fits${note}`;
    case 'default':
      return `${start} by default_egress: no rule fits${note}`;
    case 'name':
      return `${start}: the name may not be asked for, by ${named}`;
    case 'no_network':
      return `${start}: the sandbox has no network (network.enabled is false)`;
    case 'resolver':
      return `${start}: port 53 leads to the sandbox's own resolver, which judges each name that is asked for`;
    case 'closed_port':
      return `${start}: the port is a way to resolve names past the resolver, and closed to every sandbox`;
    case 'out_of_reach':
      return `${start}: no rule opens it; sandboxes have no IPv6, and reach each other through published ports alone`;
    default:
      return decidedBy satisfies never;
  }
}

const NOT_RESOLVED =
  '; the sandbox has not resolved the name, so this holds for any public address that it leads to';

/** As the command line writes it: `allow:egress@domain=example.com:tcp:443`. */
function describeRule({
  action,
  direction,
  destination,
  protocols = [],
  ports = [],
}: DecidingRule['rule']): string {
  const [kind, text] = destination === 'any' ? ['', 'any'] : (Object.entries(destination)[0] ?? ['', '']);
  const prefix = { domain: 'domain=', domain_suffix: 'suffix=' }[kind] ?? '';
  const ranges = ports.map(({ start, end }) => (start === end ? `${start}` : `${start}-${end}`)).join('+');
  const transport = protocols.length === 0 && ranges !== '' ? ['any'] : protocols;
  return [`${action}:${direction}@${prefix}${text}`, transport.join('+'), ranges]
    .filter((part) => part !== '')
    .join(':');
}

function invalid(field: string, reason: string): PlatformError {
  return new PlatformError('invalid_request', `${field}: ${reason}`, { details: { field, reason } });
}
