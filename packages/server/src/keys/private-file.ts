import { randomBytes } from 'node:crypto';
import { link, open, rename, stat, unlink } from 'node:fs/promises';
import { dirname } from 'node:path';

/** Makes a file that only its owner reads, unless there is one. Two processes may do so at once; one of them does. */
export async function createPrivateFile(path: string, content: Uint8Array): Promise<void> {
  const temporary = await writeTemporary(path, content, await stat(dirname(path)));
  try {
    // Unlike rename, link never replaces a file that another process has just made.
    await link(temporary, path);
  } catch (error) {
    if (!isErrno(error, 'EEXIST')) throw error;
  } finally {
    await unlink(temporary);
  }
}

/** Whoever reads it finds the old content or the new one, also after a crash. It keeps its owner. */
export async function replacePrivateFile(path: string, content: Uint8Array): Promise<void> {
  const owner = await stat(path).catch(() => stat(dirname(path)));
  await rename(await writeTemporary(path, content, owner), path);
  await using folder = await open(dirname(path), 'r');
  await folder.sync();
}

export function isErrno(error: unknown, code: string): boolean {
  return error instanceof Error && 'code' in error && error.code === code;
}

/** Whole and on the disk before it gets its name. */
async function writeTemporary(
  path: string,
  content: Uint8Array,
  owner: { readonly uid: number; readonly gid: number },
): Promise<string> {
  const temporary = `${path}.${randomBytes(6).toString('hex')}`;
  await using file = await open(temporary, 'wx', 0o600);
  await file.writeFile(content);
  // SAFETY: mode 0600 throughout; only the owner changes, from root to whom the folder or the old file belongs.
  if (process.getuid?.() === 0) await file.chown(owner.uid, owner.gid);
  await file.sync();
  return temporary;
}
