import { setTimeout } from 'node:timers/promises';
import { PlatformError } from '@svc/contract/errors';

/** Longer than a process takes to die under load; one that waits for a dead disk may never do so. */
const DEADLINE_MS = 10_000;

/** Repeats an attempt until it succeeds, for removals that the kernel completes late. `what` names the object in the error. */
export async function untilDone(what: string, attempt: () => boolean | Promise<boolean>): Promise<void> {
  const deadline = performance.now() + DEADLINE_MS;
  for (let pauseMs = 1; !(await attempt()); pauseMs = Math.min(pauseMs * 2, 50)) {
    if (performance.now() > deadline) {
      throw new PlatformError('unavailable', `The kernel does not let go of ${what}; try again later`);
    }
    await setTimeout(pauseMs);
  }
}
