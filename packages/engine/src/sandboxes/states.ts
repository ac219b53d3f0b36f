import { PlatformError } from '@svc/contract/errors';
import type { SandboxState } from '@svc/contract/orchestrator';

/**
 * Every legal move of a sandbox. A move that is not in this table cannot happen. Removal is legal from every state. `failed` is a run that
 * ended badly; like `stopped` it can be started again. A start becomes `stopped` when its engine ended during it.
 */
export const NEXT_STATES = {
  created: ['starting'],
  starting: ['running', 'failed', 'stopping', 'stopped'],
  running: ['stopping', 'stopped', 'failed'],
  stopping: ['stopped', 'failed'],
  stopped: ['starting'],
  failed: ['starting'],
} as const satisfies Record<SandboxState, readonly SandboxState[]>;

export function canMove(from: SandboxState, to: SandboxState): boolean {
  const next: readonly SandboxState[] = NEXT_STATES[from];
  return next.includes(to);
}

/** @throws PlatformError `invalid_state_transition` */
export function assertMove(id: string, from: SandboxState, to: SandboxState): void {
  if (canMove(from, to)) return;
  const message = `Sandbox ${id} is ${from} and cannot become ${to}`;
  throw new PlatformError('invalid_state_transition', message, { details: { sandboxId: id, from, to } });
}
