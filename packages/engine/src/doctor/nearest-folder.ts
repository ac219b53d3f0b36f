import { stat } from 'node:fs/promises';
import { dirname } from 'node:path';

/** The folder itself, or its nearest existing parent: a folder that is made below it lies on the same file system. */
export async function nearestFolder(folder: string): Promise<string> {
  const isThere = await stat(folder).then(
    (found) => found.isDirectory(),
    () => false,
  );
  return isThere || folder === '/' ? folder : await nearestFolder(dirname(folder));
}
