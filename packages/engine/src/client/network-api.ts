import type { Network } from '@svc/contract';
import type { Explanation, Question } from '../policy/explain.ts';
import type { NetworkDecision, StoppedRequest } from '../policy/network-decision.ts';

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
