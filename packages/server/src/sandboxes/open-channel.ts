import { PlatformError, type ChannelClient } from '@svc/contract';
import { OUT_OF_MEMORY } from '../orchestrator/not-running.ts';
import type { Orchestrator } from '../orchestrator/orchestrator.ts';
import type { Database } from '../store/database.ts';
import { listRuns } from '../store/runs.ts';

export type OpenChannel = (sandboxId: string, signal: AbortSignal) => Promise<ChannelClient>;

/** Opens channels. An ephemeral sandbox is removed with its run; that it ran out of memory is then read from the stored run. */
export function createOpenChannel(
  orchestrator: Pick<Orchestrator, 'openChannel'>,
  database: Database,
): OpenChannel {
  return async (id, signal) => {
    try {
      return await orchestrator.openChannel(id, signal);
    } catch (error) {
      if (!PlatformError.is(error, 'sandbox_not_found')) throw error;
      throw (await memoryEnd(database, id, error)) ?? error;
    }
  };
}

async function memoryEnd(database: Database, id: string, cause: Error): Promise<PlatformError | undefined> {
  const latest = (await listRuns(database, id)).at(-1);
  if (latest?.end_reason !== OUT_OF_MEMORY) return undefined;
  const ended = `out of memory: more than ${latest.memory_mib} MiB were needed; raise resources.memory_mib`;
  const details = { state: 'removed', reason: OUT_OF_MEMORY, ended };
  return new PlatformError('sandbox_not_running', `Sandbox ${id} is removed; ${ended}`, { details, cause });
}
