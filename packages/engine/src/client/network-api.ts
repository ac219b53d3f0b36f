import type { Network } from '@svc/contract';
import type { Explanation, Question } from '../policy/explain.ts';
import type { NetworkDecision, StoppedRequest } from '../policy/network-decision.ts';

/** May a sandbox open this connection, and by which rule? */
export interface ExplainNetwork extends Question {
  /** Its own policy counts, and what it has resolved; of one that is not made yet, `network` counts. */
  readonly id: string;
  readonly network?: Network;
  /** As in `CreateSandbox`, of one that is not made yet. */
  readonly networkCeiling?: readonly string[] | null;
}

export interface NetworkExplanation extends Explanation {
  /** What becomes of a placeholder in a request to that host: its value goes there, it stays as it is, or the request is stopped. */
  readonly secrets: readonly {
    readonly envVar: string;
    readonly action: 'substitute' | 'leave' | 'block' | 'block_and_log' | 'block_and_terminate';
  }[];
}

/** Something that was decided about the network of a sandbox, as often as it happened. */
export interface NetworkLogEntry extends Omit<NetworkDecision, 'secret'> {
  /** Hand it back to read on behind this entry. One that happens again gets another. */
  readonly sequence: number;
  readonly firstTime: string;
  /** When it last happened. */
  readonly time: string;
  /** Packets, questions, connections or requests. */
  readonly count: number;
  /** A sentence, in the words of an explanation. */
  readonly reason: string;
  readonly secret: StoppedRequest | null;
}

/** `leftOut`: how much more was denied so far, and is in no entry, since it was too much. */
export type NetworkLogLine = { readonly entry: NetworkLogEntry } | { readonly leftOut: number };

export interface ReadNetworkLog {
  /** Sequence of the last entry that was seen. */
  readonly after?: number;
  readonly verdict?: NetworkDecision['verdict'];
  readonly follow?: boolean;
}

/** A visitor who wanted to come in through a published port, and was not let in. */
export interface RefusedVisitor {
  readonly address: string;
  /** Inside. */
  readonly port: number;
  readonly protocol: 'tcp' | 'udp';
  /** Of the policy; null: its default. */
  readonly rule: number | null;
  /** How often, since it was told of last. */
  readonly count: number;
}

export interface RefusedVisitors {
  readonly visitors: readonly RefusedVisitor[];
  /** How many besides. */
  readonly leftOut: number;
}
