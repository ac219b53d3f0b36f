import { access, constants, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { isErrno } from '@svc/contract/errno';
import { loadCompiler, PlatformError } from '@svc/contract';
import { isWorldReadable } from '../host/is-world-readable.ts';
import { becomeUser, findIdentity, type Identity } from '../host/drop-privileges.ts';
import { installationUser } from '../host/installation-user.ts';
import { prepareFolders } from '../host/prepare-folders.ts';
import { loadPostgres } from '../store/open-database.ts';
import type { StorePlace } from './local-store.ts';

/**
 * Drops root for good before a command touches the server's folder, so that links that the server's user has put there
 * cannot reach further than that user. Does nothing for other users. `needsFolder`: make it when it is missing.
 */
export async function becomeServerUser(
  { dataFolder, databaseUrl }: StorePlace,
  { needsFolder = databaseUrl === undefined }: { readonly needsFolder?: boolean } = {},
): Promise<void> {
  if (process.getuid?.() !== 0) return;
  if (databaseUrl !== undefined) await loadPostgres();
  // What is loaded when it is needed must be loaded now when the program is where that user cannot read.
  if (!isWorldReadable(import.meta.filename)) loadCompiler();
  const serverFolder = join(dataFolder, 'server');
  const owner = (await ownerOf(serverFolder)) ?? installationUser(dataFolder);
  if (needsFolder) await prepareFolders({ dataFolder, serverFolder }, owner);
  becomeUser(owner);
  if (needsFolder) await checkReach(serverFolder, owner);
}

async function checkReach(serverFolder: string, { uid }: Identity): Promise<void> {
  try {
    await access(serverFolder, constants.R_OK | constants.W_OK | constants.X_OK);
  } catch (error) {
    const hint = `user ${uid}, as whom the server runs, cannot get to ${serverFolder}; let others pass the folders above it (chmod o+x), or choose another --path`;
    throw new PlatformError('forbidden', hint, { cause: error });
  }
}

/** Undefined when there is no folder, or root has made it and it was never used. */
async function ownerOf(serverFolder: string): Promise<Identity | undefined> {
  const { uid, gid } = await stat(serverFolder).catch((error: unknown) => {
    if (isErrno(error, 'ENOENT')) return { uid: 0, gid: 0 };
    throw error;
  });
  return uid === 0 ? undefined : findIdentity(`${uid}:${gid}`);
}
