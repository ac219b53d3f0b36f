import type { CallBudget } from './call-budget.ts';
import type { StreamEvent } from './server-events.ts';
import { SvcError } from '../svc-error.ts';
import { toSvcError } from './to-svc-error.ts';
import { withRetries } from './with-retries.ts';

/** A stream that ends without saying so, again and again, must not become a busy loop. */
const RECONNECT_MS = 100;
/** Beyond the retries of each call: enough for a server that is started again. */
const MAX_RECONNECTS = 12;

/**
 * The events of a stream up to its `end`, which comes too. When the connection breaks, it is opened again behind the last
 * event that was seen.
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
      // Anything but a broken connection is for the caller.
      if (!SvcError.is(toSvcError(error), 'connection_failed')) throw error;
    }
    await budget.pause(RECONNECT_MS);
  }
}
