import { PlatformError } from '@svc/contract/errors';
import type { Kit } from './kit.ts';
import type { EngineRecord } from './record.ts';

/**
 * Copies the disk of a sandbox to a new file; a running sandbox continues. Returns for how many milliseconds its disk was frozen, undefined
 * when it does not run. The copy of a running disk needs `Rootfs.settleCopy` afterwards, which no longer involves the sandbox.
 */
export async function saveDisk(
  { rootfs }: Kit,
  { id, handle, state }: EngineRecord,
  file: string,
  signal: AbortSignal,
): Promise<number | undefined> {
  // gVisor's kernel passes writes on to the host's files at once, so this one call is enough for every class of isolation.
  if (state === 'running') return await rootfs.copyLiveDisk(handle, file, signal);
  if (state === 'starting' || state === 'stopping') {
    const message = `Sandbox ${id} is ${state}; wait until it runs or is stopped before its disk is copied`;
    throw new PlatformError('invalid_state_transition', message, { details: { sandboxId: id, state } });
  }
  await rootfs.saveDisk(handle, file, signal);
  return undefined;
}
