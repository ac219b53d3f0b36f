import { isErrorCode } from '@svc/contract/errors';
import { isPassing } from '@svc/contract/retry';
import type { CallBudget } from './call-budget.ts';
import type { SvcError } from '../svc-error.ts';
import { toSvcError } from './to-svc-error.ts';

const FIRST_PAUSE_MS = 200;
const LONGEST_PAUSE_MS = 5000;

/**
 * Repeats what failed for a reason that passes by itself, a few times, each after a longer pause.
 * Only for work that may be done twice, or that carries an idempotency key.
 */
export async function withRetries<T>(
  budget: CallBudget,
  maxRetries: number,
  attempt: () => Promise<T>,
): Promise<T> {
  for (let retries = 0; ; retries++) {
    budget.check();
    try {
      return await attempt();
    } catch (error) {
      budget.check();
      const failure = toSvcError(error);
      const pauseMs = failure.retryAfterMs ?? backOffMs(retries);
      // A pause beyond the end of the call would only replace the reason by a timeout.
      if (retries >= maxRetries || !mayPass(failure) || pauseMs >= budget.remainingMs) throw failure;
      await budget.pause(pauseMs);
    }
  }
}

/** A request that a busy machine did not read in time: nothing has come of it. */
const NOT_READ = 408;

function mayPass({ code, status }: SvcError): boolean {
  return code === 'connection_failed' || status === NOT_READ || (isErrorCode(code) && isPassing(code));
}

/** Between half and all of a pause that doubles, so that clients that failed together do not come back together. */
function backOffMs(retries: number): number {
  const longest = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** retries);
  return longest * (0.5 + Math.random() / 2);
}
