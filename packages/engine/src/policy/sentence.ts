import type { Network, NetworkPolicy } from '@svc/contract';
import type { Action, Decider, DecidingRule, Direction, Protocol } from '@svc/contract/orchestrator';
import { DEFAULT_POLICY } from '@svc/contract/spec';

/** The rule with this index in the policy of a network; null when there is none. */
export function ruleAt(network: Network | undefined, index: number | null): DecidingRule | null {
  const { rules = [] }: NetworkPolicy = network?.policy ?? DEFAULT_POLICY;
  const rule = index === null ? undefined : rules[index];
  return index === null || rule === undefined ? null : { index, rule };
}

/** A decision and what it was about. */
export interface DecisionFacts {
  readonly action: Action;
  readonly decidedBy: Decider;
  readonly rule: DecidingRule | null;
  readonly direction: Direction;
  /** The name or address of the peer. */
  readonly host: string;
  /** Null where there is none, as for ICMP and DNS queries. */
  readonly port: number | null;
  /** Null for a DNS query over any protocol. */
  readonly protocol: Protocol | null;
  /** The address that the name resolved to. */
  readonly address: string | null;
}

/** Describes a decision and its reason; explanations and the network log share the wording. */
export function sentence(facts: DecisionFacts): string {
  const { decidedBy, rule, direction } = facts;
  const place = placeOf(facts);
  const start = `${place} is ${facts.action === 'allow' ? 'allowed' : 'denied'}`;
  const fallback = `default_${direction === 'ingress' ? 'ingress' : 'egress'}`;
  const named = rule === null ? fallback : `rule ${rule.index}, ${describeRule(rule.rule)}`;
  if (decidedBy === 'rule') return `${start} by ${named}, the first that fits`;
  if (decidedBy === 'default') return `${start} by ${fallback}: no rule fits`;
  if (decidedBy === 'name')
    return `${start}: the name may ${facts.action === 'allow' ? '' : 'not '}be asked for, by ${named}`;
  return FORESEEN.has(decidedBy) ? `${start}: ${WHY[decidedBy]}` : `${place} did not pass: ${WHY[decidedBy]}`;
}

/** Decisions that the policy or the host fixes beforehand; the others depend on the traffic. */
const FORESEEN: ReadonlySet<Decider> = new Set([
  'no_network',
  'resolver',
  'closed_port',
  'out_of_reach',
  'ceiling',
  'quic',
]);

const WHY: Readonly<Record<Exclude<Decider, 'rule' | 'default' | 'name'>, string>> = {
  no_network: 'the sandbox has no network (network.enabled is false)',
  resolver: "port 53 leads to the sandbox's own resolver, which judges each name that is asked for",
  closed_port: 'the port is a way to resolve names past the resolver, and closed to every sandbox',
  out_of_reach:
    'no rule opens it; sandboxes reach each other through published ports alone, and IPv6 where the engine has a pool for it',
  ceiling: 'it is beyond what the operator of this server lets sandboxes reach (--network-ceiling)',
  quic: 'the port is read over TCP, and closed to UDP for that (network.tls.block_quic_on_intercept)',
  too_many_connections:
    'the sandbox has as many connections as it may (network.max_connections, max_udp_connections)',
  too_many_questions: 'the sandbox asks for more names in a second than any may',
  no_proxy: 'only what is read may pass, and the proxy is just being replaced; try again',
  rebind_protection:
    'the name leads to an address that is not public, which names may not (network.dns.rebind_protection)',
  secret: 'a request had the placeholder of a secret that this host may not have',
  not_readable: 'only what can be read may pass here (an intercepted port, or network.strict)',
  not_one_host: 'a request was for another host than its connection',
  malformed: 'it does not begin with a readable TLS or HTTP message',
  upstream_unreachable: 'the host does not answer',
  upstream_not_verified: 'the certificate of the host could not be verified (network.tls.verify_upstream)',
};

function placeOf({ host: peer, port, protocol, address, direction }: DecisionFacts): string {
  // A sandbox chooses the names that it asks for, and could imitate the words of this sentence.
  const host = peer.replaceAll(/[^\x21-\x7e]/g, '?');
  const way = protocol === null ? '' : `/${protocol}`;
  if (direction === 'ingress') return `port ${port ?? 0}${way} from ${host}`;
  const through = address === null || address === host ? '' : ` (at ${address})`;
  return `${port === null ? host : `${host}:${port}`}${way}${through}`;
}

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
