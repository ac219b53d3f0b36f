import { PlatformError } from '@svc/contract';
import type { ObservedState } from '../store/sandbox-moves.ts';
import type { SandboxRecord } from '../store/sandboxes.ts';

/** What callers may ask for, and in which states. `again`: it is under way already, so asking again changes nothing. */
const LEGAL = {
  start: { states: ['created', 'stopped', 'failed'], again: ['starting'] },
  stop: {
    states: ['starting', 'running', 'temporarily_unavailable', 'recovery_decision_required'],
    again: ['stopping'],
  },
  recover: { states: ['temporarily_unavailable', 'recovery_decision_required'], again: [] },
} as const satisfies Record<string, Record<'states' | 'again', readonly ObservedState[]>>;

export type Verb = keyof typeof LEGAL;

/** @returns whether there is anything to do @throws PlatformError `invalid_state_transition` naming the state */
export function isNewWish(verb: Verb, { name, observed }: SandboxRecord): boolean {
  const { states, again }: Record<'states' | 'again', readonly ObservedState[]> = LEGAL[verb];
  if (states.includes(observed)) return true;
  if (again.includes(observed)) return false;
  const message = `Sandbox '${name}' is ${observed}; ${verb} is possible when it is ${listStates([...states, ...again])}`;
  throw new PlatformError('invalid_state_transition', message, { details: { state: observed, verb } });
}

function listStates(states: readonly string[]): string {
  return states.length < 2 ? states.join('') : `${states.slice(0, -1).join(', ')} or ${states.at(-1)}`;
}
