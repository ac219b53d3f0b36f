import { open, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { diskFault } from '@svc/contract/node-disk-fault';

/** Writes and removes a file in the folder. Null: that worked, or failed for a reason other than the disk. */
export async function findDiskFault(folder: string): Promise<string | null> {
  const path = join(folder, `.svc-doctor-${process.pid}`);
  try {
    await using file = await open(path, 'wx', 0o600);
    await file.writeFile('svc');
    await file.sync();
    return null;
  } catch (error) {
    // Errors of Node's file functions are always of this type.
    return diskFault(error, 'engine') === undefined ? null : (error as Error).message;
  } finally {
    await rm(path, { force: true }).catch(() => undefined);
  }
}
