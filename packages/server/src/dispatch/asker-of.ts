import type { Asker } from '../store/sandboxes.ts';
import type { RestCall } from './rest-call.ts';

/** The caller, as events name it. */
export function askerOf({ actor, requestId, sourceAddress }: RestCall): Asker {
  return { actor, requestId, sourceAddress };
}
