import { stat } from 'node:fs/promises';
import { dirname } from 'node:path';

/** The folder itself, or the nearest above it that exists: what will be made there lies on the same file system. */
export async function nearestFolder(folder: string): Promise<string> {
  const isThere = await stat(folder).then(
    (found) => found.isDirectory(),
    () => false,
  );
  return isThere || folder === '/' ? folder : await nearestFolder(dirname(folder));
}
