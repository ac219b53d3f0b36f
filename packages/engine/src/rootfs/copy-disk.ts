import { PlatformError } from '@svc/contract/errors';
import { runTool, ToolFailed } from '../host/run-tool.ts';
import { heldImage } from '../space/image-holder.ts';

/** How long a disk that was just unmounted may still be in use. */
const LOCK_WAIT_SECONDS = '10';
/** What `flock` answers when the disk stays in use; `cp` has no such status. */
const BUSY_STATUS = 75;

/**
 * Copies a disk that is not mounted to the new file `to`: shares its blocks where the file system can, and leaves holes holes.
 * Waits while the disk's last run still holds it (`unavailable`); a host without room is `insufficient_storage`. A copy that fails may leave a part of it.
 */
export async function copyDisk(from: string, to: string, signal: AbortSignal): Promise<void> {
  // SAFETY: a mounted disk is locked by its loop device, so holding the lock shows that all was written and nobody writes now.
  const lock = ['flock', '--shared', '--no-fork', '--wait', LOCK_WAIT_SECONDS];
  const copy = ['cp', '--reflink=auto', '--sparse=auto', '--', from, to];
  try {
    // The copy ends with the engine: nothing must be writing when the next one removes what is half made.
    const command = [
      '--pdeathsig',
      'KILL',
      ...lock,
      '--conflict-exit-code',
      String(BUSY_STATUS),
      from,
      ...copy,
    ];
    await runTool('setpriv', command, signal);
  } catch (error) {
    throw await reasonOf(from, error);
  }
}

async function reasonOf(disk: string, error: unknown): Promise<unknown> {
  if (!(error instanceof ToolFailed)) return error;
  if (error.status === BUSY_STATUS) return await heldImage('disk', disk, error);
  if (!error.message.includes('No space left on device')) return error;
  const message = 'The host has no room for a copy of the disk; remove sandboxes, snapshots or images';
  return new PlatformError('insufficient_storage', message, { cause: error });
}
