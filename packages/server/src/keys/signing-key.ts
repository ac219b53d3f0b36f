import { randomBytes } from 'node:crypto';
import { link, open, readFile, rename, stat, unlink } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { PlatformError } from '@svc/contract';

const KEY_BYTES = 32;
const FILE_NAME = 'signing.key';

/** Reads the signing key of a data folder, and makes one when there is none. Two processes may do so at once. */
export async function ensureSigningKey(serverFolder: string): Promise<Uint8Array> {
  const path = keyPath(serverFolder);
  const existing = await readSigningKey(path);
  if (existing !== undefined) return existing;
  const temporary = await writeTemporary(path, randomBytes(KEY_BYTES));
  try {
    // Unlike rename, link never replaces a key that another process has just made.
    await link(temporary, path);
  } catch (error) {
    if (!isErrno(error, 'EEXIST')) throw error;
  } finally {
    await unlink(temporary);
  }
  const key = await readSigningKey(path);
  if (key === undefined) throw new Error('the signing key vanished while it was made');
  return key;
}

/** Replaces the signing key: every key that was signed with the old one stops working. */
export async function resetSigningKey(serverFolder: string): Promise<Uint8Array> {
  const key = randomBytes(KEY_BYTES);
  const path = keyPath(serverFolder);
  await rename(await writeTemporary(path, key), path);
  await syncFolder(serverFolder);
  return key;
}

function keyPath(serverFolder: string): string {
  // SAFETY: a fixed name in the server's own folder, which nobody else can write.
  return join(serverFolder, FILE_NAME);
}

async function readSigningKey(path: string): Promise<Uint8Array | undefined> {
  try {
    const key = await readFile(path);
    if (key.length === KEY_BYTES) return key;
  } catch (error) {
    if (isErrno(error, 'ENOENT')) return undefined;
    if (!isErrno(error, 'EACCES')) throw error;
    const hint = `the signing key ${path} belongs to another user; run this command as that user or as root`;
    throw new PlatformError('forbidden', hint, { cause: error });
  }
  const hint = `${path} is not a signing key; make a new one with: svc server start --reset-key`;
  throw new PlatformError('internal', hint);
}

/** Whole and on the disk before it gets its name. Owned by whoever owns the folder, also when root makes it. */
async function writeTemporary(path: string, key: Uint8Array): Promise<string> {
  const temporary = `${path}.${randomBytes(6).toString('hex')}`;
  const owner = await stat(dirname(path));
  await using file = await open(temporary, 'wx', 0o600);
  await file.writeFile(key);
  // SAFETY: mode 0600 throughout; only the owner changes, from root to the service user.
  if (process.getuid?.() === 0) await file.chown(owner.uid, owner.gid);
  await file.sync();
  return temporary;
}

async function syncFolder(folder: string): Promise<void> {
  await using handle = await open(folder, 'r');
  await handle.sync();
}

function isErrno(error: unknown, code: string): boolean {
  return error instanceof Error && 'code' in error && error.code === code;
}
