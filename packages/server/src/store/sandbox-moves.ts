/** What callers want of a sandbox. `restarted`: stopped first, and then running. */
export type DesiredState = 'running' | 'restarted' | 'stopped' | 'removed';

/**
 * What is known about it; `MOVES` says what can follow what.
 * - `temporarily_unavailable`: it ran when the engine was last seen.
 * - `recovery_decision_required`: that was too long ago to go on without a decision.
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

/** @throws Error, because whoever asks for another move has a bug */
export function requireMove(from: ObservedState, to: ObservedState): void {
  const next: readonly ObservedState[] = MOVES[from];
  if (!next.includes(to)) throw new Error(`a sandbox cannot move from ${from} to ${to}`);
}
