import { open, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { diskFault } from '@svc/contract/node-disk-fault';

/** Writes a file to the folder and to its disk, and removes it. Null: that worked, or it failed for a reason that is not the disk's. */
export async function findDiskFault(folder: string): Promise<string | null> {
  const path = join(folder, `.svc-doctor-${process.pid}`);
  try {
    await using file = await open(path, 'wx', 0o600);
    await file.writeFile('svc');
    await file.sync();
    return null;
  } catch (error) {
    // Of Node's file functions, which throw nothing else.
    return diskFault(error, 'engine') === undefined ? null : (error as Error).message;
  } finally {
    await rm(path, { force: true }).catch(() => undefined);
  }
}
