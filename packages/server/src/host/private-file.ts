import { randomBytes } from 'node:crypto';
import { link, open, rename, unlink } from 'node:fs/promises';
import { dirname } from 'node:path';
import { isErrno } from '@svc/contract/errno';

/** Makes a file that only its owner reads, unless there is one. Two processes may do so at once; one of them does. */
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

/** A reader finds the old content or the new one, also after a crash. */
export async function replacePrivateFile(path: string, content: Uint8Array): Promise<void> {
  await rename(await writeTemporary(path, content), path);
  await using folder = await open(dirname(path), 'r');
  await folder.sync();
}

/** Whole and on the disk before it gets its name. */
async function writeTemporary(path: string, content: Uint8Array): Promise<string> {
  const temporary = `${path}.${randomBytes(6).toString('hex')}`;
  await using file = await open(temporary, 'wx', 0o600);
  await file.writeFile(content);
  await file.sync();
  return temporary;
}
