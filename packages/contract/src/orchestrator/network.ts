import type { Network, NetworkPolicy } from '../spec/network.ts';

export type Action = 'allow' | 'deny';

export type Direction = 'egress' | 'ingress';

export type Protocol = 'tcp' | 'udp' | 'icmpv4' | 'icmpv6';

export type Group = 'host' | 'metadata' | 'loopback' | 'private' | 'link_local' | 'multicast' | 'public';

/** Reasons that are known before a connection is made. */
export type DecidedBy =
  | 'rule'
  | 'default'
  /** The sandbox has no network at all. */
  | 'no_network'
  /** The policy forbids resolving the name. */
  | 'name'
  /** Port 53 goes to the resolver for any destination; it judges the name in the question. */
  | 'resolver'
  /** A name service that bypasses the resolver, closed to all sandboxes. */
  | 'closed_port'
  /** An address that no rule can open: of another sandbox, unspecified, or IPv6 on a host without it. */
  | 'out_of_reach'
  /** Beyond the ceiling of the operator for this organization or this host. */
  | 'ceiling'
  /** An intercepted port, closed to UDP so that HTTP/3 cannot bypass the interception. */
  | 'quic';

/** The reason for a decision: those that `explain` knows, and those that appear only at run time. */
export type Decider =
  | DecidedBy
  /** The sandbox has reached its limit of connections. */
  | 'too_many_connections'
  /** The sandbox exceeds the rate of DNS questions. */
  | 'too_many_questions'
  /** Only proxied connections may pass, and the proxy is down at the moment. */
  | 'no_proxy'
  /** The name may be resolved, but to an address that rebinding protection forbids. */
  | 'rebind_protection'
  /** A request contained the placeholder of a secret that the host may not receive. */
  | 'secret'
  | 'not_readable'
  | 'not_one_host'
  | 'malformed'
  | 'upstream_unreachable'
  | 'upstream_not_verified';

/** The kind of event: a packet by its protocol, a question or request read by the resolver or the proxy, or a peer at a published port. */
export type DecisionKind = 'dns' | 'tcp' | 'udp' | 'icmp' | 'tls' | 'http' | 'ingress';

/** A network event of a sandbox, in or out, and the decision about it. */
export interface NetworkDecision {
  readonly kind: DecisionKind;
  readonly verdict: Action;
  /** The name in the question or connection; null when there was none. */
  readonly host: string | null;
  /** The address of the peer; null when it was not resolved. */
  readonly address: string | null;
  /** Null for ICMP and DNS questions. */
  readonly port: number | null;
  readonly protocol: Protocol;
  readonly decidedBy: Decider;
  /** Index in the policy at that time; null when no rule decided. */
  readonly rule: number | null;
  readonly secret?: StoppedRequest;
}

/** A request that was blocked because of a secret, without values and query. */
export interface StoppedRequest {
  readonly action: string;
  readonly method: string;
  readonly path: string;
  readonly envVars: readonly string[];
}

export interface DecidingRule {
  readonly index: number;
  readonly rule: NonNullable<NetworkPolicy['rules']>[number];
}

/** A question to `explain`: may the sandbox open this connection, or with `ingress`, may a peer open it to the sandbox? */
export interface Question {
  readonly direction?: Direction;
  /** A name or an address; for ingress the peer's address. */
  readonly host: string;
  /** Ignored for ICMP. For ingress the port inside. */
  readonly port: number;
  readonly protocol: Protocol;
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
  /** True for a rule about a name. */
  readonly isByName: boolean;
  /** A sentence for the user. */
  readonly reason: string;
  /** The addresses of the name that this sandbox has resolved; or the one address of the question. */
  readonly addresses: readonly ConsideredAddress[];
  /** The name was not resolved, so it was decided as for any public address. */
  readonly isAssumed: boolean;
}

/** May a sandbox open this connection, and by which rule? */
export interface ExplainNetwork extends Question {
  /** Uses its own policy and resolved names; for a sandbox that does not exist yet, `network`. */
  readonly id: string;
  readonly network?: Network;
  /** As in `CreateSandbox`, for a sandbox that does not exist yet. */
  readonly networkCeiling?: readonly string[] | null;
}

export interface NetworkExplanation extends Explanation {
  /** Treatment of a placeholder in a request to that host: its value is inserted, it stays as it is, or the request is stopped. */
  readonly secrets: readonly {
    readonly envVar: string;
    readonly action: 'substitute' | 'leave' | 'block' | 'block_and_log' | 'block_and_terminate';
  }[];
}

/** A network decision of a sandbox, and how often it was made. */
export interface NetworkLogEntry extends Omit<NetworkDecision, 'secret'> {
  /** Cursor to read on behind this entry. A repeated decision gets a new one. */
  readonly sequence: number;
  readonly firstTime: string;
  /** When it was last made. */
  readonly time: string;
  /** Packets, queries, connections or requests. */
  readonly count: number;
  /** A sentence, worded as in an explanation. */
  readonly reason: string;
  readonly secret: StoppedRequest | null;
}

/** `leftOut`: number of denials so far that were over the rate limit and are in no entry. */
export type NetworkLogLine = { readonly entry: NetworkLogEntry } | { readonly leftOut: number };

export interface ReadNetworkLog {
  /** Sequence of the last entry that the caller has seen. */
  readonly after?: number;
  readonly verdict?: NetworkDecision['verdict'];
  readonly follow?: boolean;
}

/** A connection to a published port that the policy denied. */
export interface RefusedConnection {
  readonly address: string;
  /** Port in the sandbox. */
  readonly port: number;
  readonly protocol: 'tcp' | 'udp';
  /** Rule of the policy; null: its default. */
  readonly rule: number | null;
  /** How often, since the last report. */
  readonly count: number;
}

export interface RefusedConnections {
  readonly connections: readonly RefusedConnection[];
  /** Number of further connections. */
  readonly leftOut: number;
}

/** Something that a sandbox tried and was kept from. */
export interface NetworkDenial {
  /** The same for every subscriber. */
  readonly id: string;
  /** When it happened; as a Date takes it. */
  readonly time: string;
  readonly sandboxId: string;
  readonly type: 'policy_denied' | 'secret_violation';
  /** Where it wanted to go, and why not; never a value. */
  readonly details: Readonly<Record<string, unknown>>;
}
