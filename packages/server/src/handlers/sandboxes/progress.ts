import type { FetchProgress, ServerEvent } from '@svc/contract/rest';
import type { Progress } from '../../sandboxes/start-progress.ts';
import { getSandbox } from '../../store/sandboxes.ts';
import type { RestHandlers } from '../../dispatch/rest-handlers.ts';
import type { Database } from '../../store/database.ts';
import type { Convergence } from '../../sandboxes/convergence.ts';
import { requireSandbox } from './rest-sandboxes.ts';

/** Another server may do the work; this one sees its changes only in the store. */
const POLL_MS = 1000;

export function progressHandlers(
  database: Database,
  convergence: Convergence,
): Pick<RestHandlers, 'progress.follow'> {
  return {
    'progress.follow': async ({ params }, call) => {
      const { id } = await requireSandbox(database, call, { id: params.sandbox_id });
      return followStart(database, convergence, id, call.signal);
    },
  };
}

async function* followStart(
  database: Database,
  convergence: Convergence,
  sandboxId: string,
  signal: AbortSignal,
): AsyncGenerator<ServerEvent> {
  let reported: Progress | null = null;
  while (!signal.aborted) {
    // Listened for before anything is read, so that no change falls between.
    using nextChange = convergence.progress.next(sandboxId);
    using change = convergence.nextChange(sandboxId);
    const progress = convergence.progress.of(sandboxId);
    if (progress !== null && progress !== reported) yield { event: 'progress', data: viewProgress(progress) };
    reported = progress;
    const record = await getSandbox(database, sandboxId);
    if (record?.observed !== 'starting' || record.removedAt !== null) {
      yield { event: 'end', data: { status: record?.observed ?? 'stopped' } };
      return;
    }
    await Promise.race([nextChange.within(POLL_MS, signal), change.within(POLL_MS, signal)]);
  }
}

export function viewProgress({ message, done, total }: Progress): FetchProgress {
  return { message, done_bytes: done, total_bytes: total };
}
