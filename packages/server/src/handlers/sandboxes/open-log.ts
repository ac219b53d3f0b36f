import { PlatformError } from '@svc/contract';
import type { RestCall } from '../../dispatch/rest-call.ts';
import type { Orchestrator } from '../../orchestrator/orchestrator.ts';
import type { Database } from '../../store/database.ts';
import { requireSandbox } from './rest-sandboxes.ts';

/**
 * Opens the engine's log of a sandbox. Errors are found first, while the answer can still have an error status. `read` may throw for
 * invalid parameters; entries are read once the answer is.
 */
export async function openLog<Entry>(
  database: Database,
  orchestrator: Pick<Orchestrator, 'get'>,
  {
    call,
    sandboxId,
  }: { readonly call: Pick<RestCall, 'organization' | 'signal'>; readonly sandboxId: string },
  read: (id: string, signal: AbortSignal) => AsyncIterable<Entry>,
): Promise<AsyncIterable<Entry>> {
  const { signal } = call;
  const { id } = await requireSandbox(database, call, { id: sandboxId });
  const entries = read(id, signal);
  // A sandbox that was never made has no log yet.
  return (await orchestrator.get(id, signal)) === undefined ? nothing() : entries;
}

export function invalidCursor(): PlatformError {
  const details = { field: 'cursor' };
  return new PlatformError('invalid_cursor', 'Use the cursor of an earlier entry, unchanged', { details });
}

async function* nothing(): AsyncGenerator<never> {
  // An empty log.
}
