import { PlatformError } from '@svc/contract/errors';
import type { Kit } from './kit.ts';
import type { EngineRecord } from './record.ts';

/**
 * Copies the disk of a sandbox to a new file; one that runs goes on. Returns for how many milliseconds its disk stood still, undefined
 * when it does not run. The copy of one that runs is to be settled (`Rootfs.settleCopy`), which does not concern the sandbox any more.
 */
export async function saveDisk(
  { rootfs }: Kit,
  { id, handle, state }: EngineRecord,
  file: string,
  signal: AbortSignal,
): Promise<number | undefined> {
  // gVisor's kernel passes writes on to the host's files at once, so this one call holds for every class.
  if (state === 'running') return await rootfs.copyLiveDisk(handle, file, signal);
  if (state === 'starting' || state === 'stopping') {
    const message = `Sandbox ${id} is ${state}; wait until it runs or is stopped before its disk is copied`;
    throw new PlatformError('invalid_state_transition', message, { details: { sandboxId: id, state } });
  }
  await rootfs.saveDisk(handle, file, signal);
  return undefined;
}
