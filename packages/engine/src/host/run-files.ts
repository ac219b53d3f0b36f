import { lstatSync, readdirSync, rmdirSync, unlinkSync } from 'node:fs';
import { isErrno } from '@svc/contract/errno';

/**
 * Removes the tree at `path`, which has only a few small files; succeeds when it is missing. A mount point in it is `EBUSY`.
 * Synchronous on purpose, like all work in the engine's run folder, which is in memory: a round trip through Node's thread pool
 * takes ten times as long as the kernel, in CPU time too.
 */
export function removeTree(path: string): void {
  // Checked first: creating an error takes longer than everything else here.
  const found = lstatSync(path, { throwIfNoEntry: false });
  if (found === undefined) return;
  if (!found.isDirectory()) return removeFile(path);
  // Another process may have removed it since the check.
  unlessGone(() => {
    for (const entry of readdirSync(path, { withFileTypes: true })) {
      const below = `${path}/${entry.name}`;
      if (entry.isDirectory()) removeTree(below);
      else removeFile(below);
    }
  });
  removeEmptyFolder(path);
}

/** Succeeds when it is missing. */
export function removeFile(path: string): void {
  unlessGone(() => unlinkSync(path));
}

/** Succeeds when it is missing. */
export function removeEmptyFolder(path: string): void {
  unlessGone(() => rmdirSync(path));
}

function unlessGone(remove: () => void): void {
  try {
    remove();
  } catch (error) {
    if (!isErrno(error, 'ENOENT')) throw error;
  }
}
