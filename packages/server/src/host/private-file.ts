import { randomBytes } from 'node:crypto';
import { link, open, rename, unlink } from 'node:fs/promises';
import { dirname } from 'node:path';
import { isErrno } from '@svc/contract/errno';

/** Creates a file that only its owner can read, unless it exists. Of two processes at once one creates it. */
export async function createPrivateFile(path: string, content: Uint8Array): Promise<void> {
  const temporary = await writeTemporary(path, content);
  try {
    // Unlike rename, link never replaces a file that another process has just made.
    await link(temporary, path);
  } catch (error) {
    if (!isErrno(error, 'EEXIST')) throw error;
  } finally {
    await unlink(temporary);
  }
}

/** Atomic: a reader finds the old content or the new one, also after a crash. */
export async function replacePrivateFile(path: string, content: Uint8Array): Promise<void> {
  await rename(await writeTemporary(path, content), path);
  await using folder = await open(dirname(path), 'r');
  await folder.sync();
}

/** Complete and synced to disk before it gets its name. */
async function writeTemporary(path: string, content: Uint8Array): Promise<string> {
  const temporary = `${path}.${randomBytes(6).toString('hex')}`;
  await using file = await open(temporary, 'wx', 0o600);
  await file.writeFile(content);
  await file.sync();
  return temporary;
}
