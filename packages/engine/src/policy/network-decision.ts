import type { Action, Protocol } from './resolve-policy.ts';

/** What holds before anything happens. */
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
  /** An address that no rule opens: another sandbox, nobody's, or IPv6 where there is none. */
  | 'out_of_reach'
  /** The operator lets no sandbox of this organization, or of this host, go there. */
  | 'ceiling'
  /** A port that is read, closed to UDP so that nothing goes past that. */
  | 'quic';

/** Who decided: what `explain` foresees, or what shows only when it happens. */
export type Decider =
  | DecidedBy
  /** As many connections as the sandbox may have are open. */
  | 'too_many_connections'
  /** More questions a second than any sandbox may ask. */
  | 'too_many_questions'
  /** Only what is read may pass, and there is nobody to read it, for the moment. */
  | 'no_proxy'
  /** The name may be asked for, and leads where this sandbox must not be led. */
  | 'rebind_protection'
  /** A request had the placeholder of a secret that the host may not have. */
  | 'secret'
  | 'not_readable'
  | 'not_one_host'
  | 'malformed'
  | 'upstream_unreachable'
  | 'upstream_not_verified';

/** What was decided about: a packet by its protocol, what the resolver and the proxy read, and who comes in through a published port. */
export type DecisionKind = 'dns' | 'tcp' | 'udp' | 'icmp' | 'tls' | 'http' | 'ingress';

/** Something that a sandbox did on its network, or somebody did to it, and what was decided about it. */
export interface NetworkDecision {
  readonly kind: DecisionKind;
  readonly verdict: Action;
  /** The name that was asked for or said; null when there was none. */
  readonly host: string | null;
  /** Of the peer; null when nobody got that far. */
  readonly address: string | null;
  /** Null where there is none: ICMP, and questions. */
  readonly port: number | null;
  readonly protocol: Protocol;
  readonly decidedBy: Decider;
  /** In the policy of that moment; null when none decided. */
  readonly rule: number | null;
  readonly secret?: StoppedRequest;
}

/** A request that was stopped for a secret: never a value, and no query. */
export interface StoppedRequest {
  readonly action: string;
  readonly method: string;
  readonly path: string;
  readonly envVars: readonly string[];
}

/** A bounded part of what was decided about what a sandbox does. */
export interface NetworkReport {
  readonly decisions: readonly { readonly decision: NetworkDecision; readonly count: number }[];
  /** What was denied besides, and is too much to be told. */
  readonly leftOut: number;
}
