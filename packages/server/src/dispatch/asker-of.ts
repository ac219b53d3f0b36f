import type { Asker } from '../store/sandboxes.ts';
import type { RestCall } from './rest-call.ts';

/** Who asks, as events name them. */
export function askerOf({ actor, requestId, sourceAddress }: RestCall): Asker {
  return { actor, requestId, sourceAddress };
}
