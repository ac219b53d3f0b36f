import { statfsSync } from 'node:fs';
import { isCausedByErrno } from '@svc/contract/errno';
import { PlatformError } from '@svc/contract/errors';

/** The rest that counts as full; a file takes at least one block. */
const FEW_BLOCKS = 16;

/** The error for a write that the host's disk refused for lack of bytes or of inodes, which are not checked before a write. */
export function hostIsFull(cause: unknown): PlatformError {
  const message = 'The disk of the host has no room, or no inodes, left; remove sandboxes or images';
  return new PlatformError('insufficient_storage', message, { cause });
}

/** Whether a failure means that the host's disk is full, and not a guest's disk or another limit of the kernel. */
export function isOfFullHost(error: unknown, folder: string): boolean {
  if (!isCausedByErrno(error, 'ENOSPC', 'EDQUOT')) return false;
  const { bavail, ffree, files } = statfsSync(folder);
  // File systems without a fixed number of inodes report none at all.
  return bavail < FEW_BLOCKS || (files > 0 && ffree < FEW_BLOCKS);
}
