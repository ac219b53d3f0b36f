import { stat, statfs } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { isErrno } from '@svc/contract/errno';
import { PlatformError } from '@svc/contract/errors';
import { allocatedBytesOf } from '../host/allocated-bytes.ts';
import { copyDisk } from '../rootfs/copy-disk.ts';
import type { LiveDisks } from '../rootfs/live-disk.ts';
import { devicesByImage } from '../space/disk-limit.ts';
import { usualReserve } from '../space/host-space.ts';

/** Longest time that a copy blocks writes of a sandbox; a copy that takes longer fails. */
const MOST_FROZEN_MS = 120_000;
/** How long a copy waits for a running snapshot of the same disk. */
const BUSY_WAIT_MS = 60_000;

/**
 * Copies the image of a file system, mounted or not, into `folder`, as it was at one moment. Writes of the sandbox block meanwhile;
 * readers see no difference. @returns the copy; undefined when the image is gone
 */
export async function copyAtRest(
  liveDisks: LiveDisks,
  image: string,
  folder: string,
  signal: AbortSignal,
): Promise<string | undefined> {
  const copy = join(folder, 'copy.img');
  try {
    await requireSpace(image, folder);
    if (devicesByImage().has(image)) await copyLive(liveDisks, image, copy);
    else await copyDisk(image, copy, signal);
    return copy;
  } catch (error) {
    if (isErrno(error, 'ENOENT')) return undefined;
    // The sandbox may have been started, stopped or removed since the check above.
    if (!(await exists(image))) return undefined;
    throw error;
  }
}

async function copyLive(liveDisks: LiveDisks, image: string, copy: string): Promise<void> {
  try {
    await liveDisks.copy(image, copy, { mostMs: MOST_FROZEN_MS, busyMs: BUSY_WAIT_MS });
  } catch (error) {
    if (PlatformError.is(error) && error.code === 'insufficient_storage') throw tooLittleSpace();
    const reason = error instanceof Error ? error.message : String(error);
    const message = `${basename(image)} of a running sandbox could not be copied (${reason}); stop the sandbox, or leave disks out with --no-disks`;
    throw new PlatformError('unavailable', message, { cause: error });
  }
}

/** Keeps free space for sandboxes while copying. */
async function requireSpace(image: string, folder: string): Promise<void> {
  const neededBytes = allocatedBytesOf(await stat(image));
  const { bavail, blocks, bsize } = await statfs(folder);
  if (bavail * bsize - neededBytes <= usualReserve(blocks * bsize)) throw tooLittleSpace();
}

function tooLittleSpace(): PlatformError {
  return new PlatformError(
    'insufficient_storage',
    'there is too little room for a copy of a disk, which is made before it goes into the backup; free some, or leave disks out with --no-disks',
  );
}

async function exists(path: string): Promise<boolean> {
  return await stat(path).then(
    () => true,
    () => false,
  );
}
