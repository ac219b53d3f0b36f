import { lstatSync, readdirSync, rmdirSync, unlinkSync } from 'node:fs';
import { isErrno } from '@svc/contract/errno';

/**
 * Removes what lies at `path` and all below, a few small files; succeeds when nothing does. Busy is what is mounted there.
 * Synchronous on purpose, as all that is done in the engine's run folder, which is in memory: a round trip through Node's thread pool
 * takes ten times what the kernel does, of the processor too.
 */
export function removeTree(path: string): void {
  // Asked first: an error takes longer to make than all the rest.
  const found = lstatSync(path, { throwIfNoEntry: false });
  if (found === undefined) return;
  if (!found.isDirectory()) return removeFile(path);
  // What was there a moment ago, others may have removed since.
  unlessGone(() => {
    for (const entry of readdirSync(path, { withFileTypes: true })) {
      const below = `${path}/${entry.name}`;
      if (entry.isDirectory()) removeTree(below);
      else removeFile(below);
    }
  });
  removeEmptyFolder(path);
}

/** Succeeds when there is none. */
export function removeFile(path: string): void {
  unlessGone(() => unlinkSync(path));
}

/** Succeeds when there is none. */
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
