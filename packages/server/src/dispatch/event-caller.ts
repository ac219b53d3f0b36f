import type { EventCaller } from '../store/sandboxes.ts';
import type { RestCall } from './rest-call.ts';

/** The caller, as events name it. */
export function eventCaller({ actor, requestId, sourceAddress }: RestCall): EventCaller {
  return { actor, requestId, sourceAddress };
}
