import type { CallBudget } from './call-budget.ts';
import type { StreamEvent } from './server-events.ts';
import { SvcError } from '../svc-error.ts';
import { toSvcError } from './to-svc-error.ts';
import { withRetries } from './with-retries.ts';

/** Keeps a stream that repeatedly ends without an `end` event from becoming a busy loop. */
const RECONNECT_MS = 100;
/** In addition to the retries of each call: enough for a restart of the server. */
const MAX_RECONNECTS = 12;

/**
 * The events of a stream up to and including its `end`. When the connection breaks, it is opened again after the last event
 * that was received.
 */
export async function* followEvents(
  budget: CallBudget,
  open: (lastId: string | undefined) => Promise<AsyncIterable<StreamEvent>>,
): AsyncGenerator<StreamEvent, void> {
  let lastId: string | undefined;
  for (;;) {
    const events = await withRetries(budget, MAX_RECONNECTS, () => open(lastId));
    try {
      for await (const event of events) {
        lastId = event.id ?? lastId;
        yield event;
        if (event.event === 'end') return;
      }
    } catch (error) {
      budget.check();
      // Every failure but a broken connection is thrown.
      if (!SvcError.is(toSvcError(error), 'connection_failed')) throw error;
    }
    await budget.pause(RECONNECT_MS);
  }
}
