import type { NetworkDecision } from '@svc/contract/orchestrator';

/** A bounded list of decisions about a sandbox. */
export interface NetworkReport {
  readonly decisions: readonly { readonly decision: NetworkDecision; readonly count: number }[];
  /** The number of further denials that are not listed. */
  readonly leftOut: number;
}
