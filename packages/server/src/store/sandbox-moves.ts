/** The desired state of a sandbox. `restarted`: stop it first, then run it. */
export type DesiredState = 'running' | 'restarted' | 'stopped' | 'removed';

/**
 * The observed state; `MOVES` has the legal transitions.
 * - `temporarily_unavailable`: it ran when the engine was last reachable.
 * - `recovery_decision_required`: the engine was unreachable for too long to continue without a decision.
 */
export type ObservedState =
  | 'created'
  | 'starting'
  | 'running'
  | 'temporarily_unavailable'
  | 'recovery_decision_required'
  | 'stopping'
  | 'stopped'
  | 'failed';

/** Every legal move of a sandbox. What is not in this table cannot be written; removal is legal from every state. */
const MOVES = {
  created: ['starting'],
  starting: ['running', 'stopping', 'failed'],
  running: ['temporarily_unavailable', 'stopping', 'stopped', 'failed'],
  temporarily_unavailable: [
    'running',
    'recovery_decision_required',
    'starting',
    'stopping',
    'stopped',
    'failed',
  ],
  recovery_decision_required: ['temporarily_unavailable', 'starting', 'stopping', 'stopped', 'failed'],
  stopping: ['stopped', 'failed'],
  stopped: ['starting'],
  failed: ['starting'],
} as const satisfies Record<ObservedState, readonly ObservedState[]>;

/** @throws Error, not PlatformError: an illegal move is a bug of the caller */
export function requireMove(from: ObservedState, to: ObservedState): void {
  const next: readonly ObservedState[] = MOVES[from];
  if (!next.includes(to)) throw new Error(`a sandbox cannot move from ${from} to ${to}`);
}
