import { PlatformError } from '@svc/contract';
import type { RestCall } from '../../dispatch/rest-call.ts';
import type { Orchestrator } from '../../orchestrator/orchestrator.ts';
import type { Database } from '../../store/database.ts';
import { requireSandbox } from './rest-sandboxes.ts';

/**
 * Opens what the engine writes down about a sandbox. What fails is asked for first, while the answer still has no head. `read` may refuse
 * what was asked for; nothing is read before the answer is.
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
  // About a sandbox that was never made nothing is written down yet.
  return (await orchestrator.get(id, signal)) === undefined ? nothing() : entries;
}

export function invalidCursor(): PlatformError {
  const details = { field: 'cursor' };
  return new PlatformError('invalid_cursor', 'Use the cursor of an earlier entry, unchanged', { details });
}

async function* nothing(): AsyncGenerator<never> {
  // Nothing to yield.
}
