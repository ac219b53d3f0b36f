import { PlatformError } from '@svc/contract';
import { explainBreak } from '../../orchestrator/explain-break.ts';
import { OUT_OF_MEMORY } from '../../orchestrator/not-running.ts';
import type { Orchestrator } from '../../orchestrator/orchestrator.ts';
import type { Database } from '../../store/database.ts';
import { listRuns } from '../../store/runs.ts';
import type { SandboxRecord } from '../../store/sandboxes.ts';
import { CLOSE, type ChannelEnd } from './relay.ts';

/** What a client is told whose channel the sandbox has ended: it may have run out of memory. */
export async function explainEnd(
  { orchestrator, database }: { readonly orchestrator: Orchestrator; readonly database: Database },
  { id, name }: SandboxRecord,
): Promise<ChannelEnd> {
  const why = await explainBreak((signal) => orchestrator.openChannel(id, signal));
  const ended = PlatformError.is(why) ? await memoryEnd(database, id, why) : undefined;
  return ended === undefined
    ? null
    : { code: CLOSE.outOfMemory, message: `Sandbox '${name}' ended, ${ended}` };
}

/** A sandbox that is gone after its run has left a record. */
async function memoryEnd(database: Database, id: string, why: PlatformError): Promise<string | undefined> {
  const { reason, ended } = why.details ?? {};
  if (reason === OUT_OF_MEMORY && typeof ended === 'string') return ended;
  if (why.code !== 'sandbox_not_found') return undefined;
  const latest = (await listRuns(database, id)).at(-1);
  return latest?.end_reason === OUT_OF_MEMORY
    ? 'out of memory: it needed more than it has; raise resources.memory_mib'
    : undefined;
}
