import type { FetchProgress } from '@svc/contract/rest';
import { withBudgetEach, type CallOptions } from '../client/call-budget.ts';
import type { Client } from '../client/client.ts';
import { followEvents } from '../client/follow-events.ts';

/** How a start goes, until it is over. Nothing when nothing starts. */
export async function* followStart(
  client: Client,
  sandboxId: string,
  options: CallOptions,
): AsyncGenerator<FetchProgress, void> {
  const input = { params: { sandbox_id: sandboxId } };
  const events = withBudgetEach(options, (budget) =>
    followEvents(budget, () => client.call('progress.follow', input, { signal: budget.signal })),
  );
  for await (const { event, data } of events) {
    // As the table says of this stream.
    if (event === 'progress') yield data as FetchProgress;
  }
}
