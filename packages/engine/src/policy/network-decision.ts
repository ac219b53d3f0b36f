import type { Action, Protocol } from './resolve-policy.ts';

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

/** A bounded list of decisions about a sandbox. */
export interface NetworkReport {
  readonly decisions: readonly { readonly decision: NetworkDecision; readonly count: number }[];
  /** The number of further denials that are not listed. */
  readonly leftOut: number;
}
