import { isErrorCode } from '@svc/contract/errors';
import { isTransient } from '@svc/contract/retry';
import type { CallBudget } from './call-budget.ts';
import type { SvcError } from '../svc-error.ts';
import { toSvcError } from './to-svc-error.ts';

const FIRST_PAUSE_MS = 200;
const LONGEST_PAUSE_MS = 5000;

/**
 * Retries work after transient failures, a few times with exponential back-off.
 * Only for idempotent work, or work with an idempotency key.
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
      // A pause beyond the time limit of the call would only replace the error by a timeout.
      if (retries >= maxRetries || !mayPass(failure) || pauseMs >= budget.remainingMs) throw failure;
      await budget.pause(pauseMs);
    }
  }
}

/** A request that a busy server did not read in time: it had no effect. */
const NOT_READ = 408;

function mayPass({ code, status }: SvcError): boolean {
  return code === 'connection_failed' || status === NOT_READ || (isErrorCode(code) && isTransient(code));
}

/** Back-off with jitter: between half and all of a pause that doubles, so that clients that failed together do not retry together. */
function backOffMs(retries: number): number {
  const longest = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** retries);
  return longest * (0.5 + Math.random() / 2);
}
