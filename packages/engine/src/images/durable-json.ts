import { open, readFile, rename } from 'node:fs/promises';
import { dirname } from 'node:path';
import { isErrno } from '@svc/contract/errno';

/** Replaces a file atomically and flushes it before this returns: a reader, also one after a power loss, sees the old or the new value. */
export async function writeDurably(path: string, value: unknown): Promise<void> {
  const temporary = `${path}.new`;
  const file = await open(temporary, 'w', 0o600);
  try {
    await file.writeFile(JSON.stringify(value));
    await file.sync();
  } finally {
    await file.close();
  }
  await rename(temporary, path);
  await syncFolder(dirname(path));
}

/**
 * Reads a file of `writeDurably`. Returns `damaged` for a file that is not JSON or not such a record: the object it describes may be
 * intact, so it must not be taken for a leftover. `loadParser` is called only when there is a file, because schemas take a while to load.
 */
export async function readDurably<Value>(
  path: string,
  loadParser: () => Promise<(text: string) => Value>,
): Promise<Value | 'missing' | 'damaged'> {
  let text: string;
  try {
    text = await readFile(path, 'utf8');
  } catch (error) {
    if (isErrno(error, 'ENOENT', 'ENOTDIR')) return 'missing';
    throw error;
  }
  const parse = await loadParser();
  try {
    return parse(text);
  } catch {
    return 'damaged';
  }
}

export async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, 'r');
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}
