import { PlatformError } from '@svc/contract/errors';
import { runTool, ToolFailed } from '../host/run-tool.ts';
import { heldImage } from '../space/image-holder.ts';

/** How long a just unmounted disk may still be in use. */
const LOCK_WAIT_SECONDS = '10';
/** The exit code of `flock` when the disk stays in use; `cp` does not use it. */
const BUSY_STATUS = 75;

/**
 * Copies an unmounted disk to the new file `to`: shares its blocks if the file system can, and keeps holes. Waits while the disk's last run
 * still holds it (`unavailable`); a full host is `insufficient_storage`. A failed copy may leave a part of the file.
 */
export async function copyDisk(from: string, to: string, signal: AbortSignal): Promise<void> {
  // SAFETY: a loop device locks a mounted disk, so holding the lock shows that all data was written and there is no writer.
  const lock = ['flock', '--shared', '--no-fork', '--wait', LOCK_WAIT_SECONDS];
  const copy = ['cp', '--reflink=auto', '--sparse=auto', '--', from, to];
  try {
    // The copy ends with the engine, so that no writer is left when the next engine removes half-made files.
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
