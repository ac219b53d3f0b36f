import { open, rename } from 'node:fs/promises';
import { dirname } from 'node:path';

/** Replaces `path` whole, on disk before this returns: a reader, also one after a loss of power, sees the old or the new value. */
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

export async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, 'r');
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}
