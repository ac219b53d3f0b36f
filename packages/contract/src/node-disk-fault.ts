import { closeSync, openSync } from 'node:fs';
import { errnoOf } from './errno.ts';
import { PlatformError } from './errors.ts';

/** The program whose data folder is on the disk. */
export type DiskOwner = 'engine' | 'server';

/** The errnos that mean a failing disk rather than a wrong request. */
const FAULTS: Readonly<Record<string, string>> = {
  EROFS: 'is read-only',
  EIO: 'fails',
  EUCLEAN: 'is damaged',
  ENXIO: 'is gone',
  ENODEV: 'is gone',
};

/** The failure to report when `error` means that the disk of a data folder accepts no writes; undefined for other errors. */
export function diskFault(error: unknown, owner: DiskOwner): PlatformError | undefined {
  const errno = errnoOf(error) ?? '';
  return Object.hasOwn(FAULTS, errno) ? failedDisk(errno, owner, error) : undefined;
}

/** `errno`: the error of the disk. */
export function failedDisk(errno: string, owner: DiskOwner, cause: unknown): PlatformError {
  const state = FAULTS[errno] ?? 'fails';
  const message = `The disk of the ${owner}'s data folder ${state} (${errno}), so nothing can be changed; its operator finds the remedy with \`svc doctor\``;
  return new PlatformError('unavailable', message, {
    details: { disk: `${owner}_data_folder`, errno },
    cause,
  });
}

/** Checks that the disk accepts writes without writing: opens an existing file on it for writing. */
export function findDiskFault(file: string, owner: DiskOwner): PlatformError | undefined {
  try {
    closeSync(openSync(file, 'r+'));
    return undefined;
  } catch (error) {
    return diskFault(error, owner);
  }
}
