import { closeSync, openSync } from 'node:fs';
import { errnoOf } from './errno.ts';
import { PlatformError } from './errors.ts';

/** Whose data folder the disk holds. */
export type DiskOwner = 'engine' | 'server';

/** What the system answers when a disk fails, rather than when the request was wrong. */
const FAULTS: Readonly<Record<string, string>> = {
  EROFS: 'is read-only',
  EIO: 'fails',
  EUCLEAN: 'is damaged',
  ENXIO: 'is gone',
  ENODEV: 'is gone',
};

/** The failure to show when `error` says that the disk of a data folder takes no writes; undefined when it says something else. */
export function diskFault(error: unknown, owner: DiskOwner): PlatformError | undefined {
  const errno = errnoOf(error) ?? '';
  return Object.hasOwn(FAULTS, errno) ? failedDisk(errno, owner, error) : undefined;
}

/** `errno`: what the disk answered. */
export function failedDisk(errno: string, owner: DiskOwner, cause: unknown): PlatformError {
  const state = FAULTS[errno] ?? 'fails';
  const message = `The disk of the ${owner}'s data folder ${state} (${errno}), so nothing can be changed; its operator finds the remedy with \`svc doctor\``;
  return new PlatformError('unavailable', message, {
    details: { disk: `${owner}_data_folder`, errno },
    cause,
  });
}

/** Looks whether the disk takes writes, and writes nothing: a file on it that exists is opened for writing. */
export function findDiskFault(file: string, owner: DiskOwner): PlatformError | undefined {
  try {
    closeSync(openSync(file, 'r+'));
    return undefined;
  } catch (error) {
    return diskFault(error, owner);
  }
}
