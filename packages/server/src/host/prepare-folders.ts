import {
  chmod,
  constants,
  lchown,
  lstat,
  mkdir,
  open,
  readdir,
  stat,
  type FileHandle,
} from 'node:fs/promises';
import { join } from 'node:path';
import { isErrno } from '@svc/contract/errno';
import type { Identity } from './drop-privileges.ts';
import { EXIT } from './exit-codes.ts';
import { StartError } from './start-error.ts';

/** Makes the server's folders in its data folder. `owner` null: the current user. */
export async function prepareFolders(
  { dataFolder, serverFolder }: { readonly dataFolder: string; readonly serverFolder: string },
  owner: Identity | null,
): Promise<void> {
  try {
    // SAFETY: other users may pass through to the sockets and folders that are theirs, and may not list it.
    await mkdir(dataFolder, { recursive: true, mode: 0o711 });
    await mkdir(serverFolder, { recursive: true, mode: 0o700 });
    if (owner === null) return;
    await letOthersPass(dataFolder);
    await giveTo(owner, serverFolder);
  } catch (error) {
    if (!isErrno(error, 'EACCES')) throw error;
    const hint = `${dataFolder} cannot be written; run as root, or choose another folder with --path`;
    throw new StartError(EXIT.failed, hint, { cause: error });
  }
}

/** A folder that was made by other means may keep the service user from reaching its own part. */
async function letOthersPass(dataFolder: string): Promise<void> {
  const { mode } = await stat(dataFolder);
  await chmod(dataFolder, (mode & 0o7777) | 0o011);
}

/** A key may have been made by root before the first start, and the service user may have changed since the last start. */
async function giveTo({ uid, gid }: Identity, serverFolder: string): Promise<void> {
  await using folder = await openFolder(serverFolder);
  const before = await folder.stat();
  if (before.uid === uid) return;
  // SAFETY: the folder belongs to root while its files change hands, whichever mode its user gave it, so no file can be replaced by a link
  // meanwhile; a file with a second hard link, or of a third user, is not the server's and stays as it is.
  await folder.chown(0, 0);
  await folder.chmod(0o700);
  // The opened folder, even if its path leads elsewhere by now.
  const opened = `/proc/self/fd/${folder.fd}`;
  for (const name of await readdir(opened)) {
    const path = join(opened, name);
    const file = await lstat(path);
    const isOurs = file.uid === 0 || file.uid === before.uid;
    if (file.isFile() && file.nlink === 1 && isOurs) await lchown(path, uid, gid);
  }
  await folder.chown(uid, gid);
}

/** SAFETY: the folder itself and not the target of a link in its place. */
async function openFolder(path: string): Promise<FileHandle> {
  try {
    return await open(path, constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW);
  } catch (error) {
    const isOther = isErrno(error, 'ENOTDIR', 'ELOOP');
    if (!isOther) throw error;
    throw new StartError(EXIT.failed, `${path} must be a folder, not a link or a file`, { cause: error });
  }
}
