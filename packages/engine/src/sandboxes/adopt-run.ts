import type { SandboxLog } from '../logs/sandbox-log.ts';
import type { Runtime } from '../runtime/runtime.ts';
import type { Kit } from './kit.ts';
import type { EngineRecord } from './record.ts';
import { Run } from './run.ts';

const ADOPT_TIMEOUT_MS = 15_000;

interface AdoptRequest {
  readonly record: EngineRecord;
  readonly runtime: Runtime;
  readonly openLog: () => Promise<SandboxLog>;
  readonly onOutOfMemory: () => void;
}

/** Reattaches to a run that survived a restart of the engine. Undefined when the run has ended or its svc-init does not reconnect. */
export async function adoptRun(
  kit: Kit,
  { record, runtime, openLog, onOutOfMemory }: AdoptRequest,
): Promise<Run | undefined> {
  const { handle, state, run: recorded } = record;
  const slot = recorded?.slot ?? null;
  if (state !== 'running' || recorded === null || slot === null) return undefined;
  if (recorded.bootId !== kit.bootId) return undefined;
  if (!(await runtime.isAlive(handle)) || !kit.guestFolders.exists(handle)) return undefined;
  const { token } = recorded;
  const parts = { kit, handle, token, slot, runtime, log: await openLog(), onOutOfMemory };
  const run = await Run.listen({ ...parts, isFound: true });
  // A resting sandbox would take long to notice the new engine.
  run.wake();
  try {
    await run.firstHello(AbortSignal.timeout(ADOPT_TIMEOUT_MS));
    return run;
  } catch (error) {
    kit.logger.warn({ error, handle }, 'a sandbox did not come back after the restart');
    await run.close();
    return undefined;
  }
}
