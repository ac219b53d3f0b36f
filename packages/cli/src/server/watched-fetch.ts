import { setTimeout as delay } from 'node:timers/promises';
import { formatDuration } from '../terminal/amounts.ts';
import { SILENT } from '../terminal/silent-server.ts';

type Fetch = typeof globalThis.fetch;

/** The part of the silence limit after which the server's health is checked. The rest is for its answer. */
const ASKED_AFTER = 0.3;

/**
 * A fetch that detects a hanging server. Some calls take minutes, so a long wait alone means nothing: during a long silence the
 * health of the server is checked, and the call fails when that is not answered either. Later calls then fail at once.
 */
export function watchedFetch(fetch: Fetch, healthUrl: string, timeoutMs: number): Fetch {
  let isSilent = false;
  return async (input, init = {}) => {
    if (isSilent) throw silent(timeoutMs);
    const answered = new AbortController();
    const given = init.signal ?? undefined;
    const gaveUp = new AbortController();
    const watch = untilSilent(fetch, healthUrl, timeoutMs, answered.signal).then((found) => {
      if (!found) return;
      isSilent = true;
      gaveUp.abort();
    });
    const signal = given === undefined ? gaveUp.signal : AbortSignal.any([given, gaveUp.signal]);
    try {
      return await fetch(input, { ...init, signal });
    } catch (error) {
      throw gaveUp.signal.aborted ? silent(timeoutMs) : error;
    } finally {
      answered.abort();
      await watch;
    }
  };
}

/** True when the server is silent; false when an answer came first. */
async function untilSilent(
  fetch: Fetch,
  healthUrl: string,
  timeoutMs: number,
  answered: AbortSignal,
): Promise<boolean> {
  const quietMs = timeoutMs * ASKED_AFTER;
  for (;;) {
    await delay(quietMs, undefined, { signal: answered }).catch(() => undefined);
    if (answered.aborted) return false;
    const timeout = AbortSignal.timeout(timeoutMs - quietMs);
    try {
      const answer = await fetch(healthUrl, { signal: AbortSignal.any([answered, timeout]) });
      await answer.text();
    } catch {
      if (answered.aborted) return false;
      // A server that refuses connections is not silent: the call itself reports that.
      if (timeout.aborted) return true;
    }
  }
}

function silent(timeoutMs: number): Error {
  return new Error('the request failed', {
    cause: new Error(`${SILENT} ${formatDuration(timeoutMs / 1000)}`),
  });
}
