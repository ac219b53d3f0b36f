import { stat } from 'node:fs/promises';
import { basename, join, posix, resolve } from 'node:path';
import { UsageError } from '../usage-error.ts';

/** The local destination of a copy: inside an existing folder, else the path itself. */
export async function localDestination(to: string, from: string): Promise<string> {
  if (copiesContent(from)) return to;
  const isFolder = await stat(to).then(
    (stats) => stats.isDirectory(),
    () => false,
  );
  // SAFETY: the base name of the path that the user typed, not of anything that a sandbox answers.
  return isFolder || to.endsWith('/') ? join(to, nameOf(posix.basename(from))) : to;
}

/** The remote destination of a copy. */
export function remoteDestination(to: string, from: string, isFolder: boolean): string {
  if (copiesContent(from)) return to;
  return isFolder || to.endsWith('/') ? posix.join(to, nameOf(basename(resolve(from)))) : to;
}

/** `folder/.` means the content of the folder. */
function copiesContent(from: string): boolean {
  return from === '.' || from.endsWith('/.');
}

function nameOf(name: string): string {
  if (name !== '' && name !== '.' && name !== '..') return name;
  throw new UsageError('what is copied has no name of its own\n  try: a path that ends in the new name');
}
