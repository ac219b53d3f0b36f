import { randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { isErrno } from '@svc/contract/errno';
import { PlatformError } from '@svc/contract';
import { createPrivateFile, replacePrivateFile } from '../host/private-file.ts';

const KEY_BYTES = 32;
const FILE_NAME = 'signing.key';

/** Reads the signing key of a data folder, and makes one when there is none. Two processes may do so at once. */
export async function ensureSigningKey(serverFolder: string): Promise<Uint8Array> {
  const path = keyPath(serverFolder);
  const existing = await readSigningKey(path);
  if (existing !== undefined) return existing;
  await createPrivateFile(path, randomBytes(KEY_BYTES));
  const key = await readSigningKey(path);
  if (key === undefined) throw new Error('the signing key vanished while it was made');
  return key;
}

/** Replaces the signing key: every key that was signed with the old one stops working. */
export async function resetSigningKey(serverFolder: string): Promise<Uint8Array> {
  const key = randomBytes(KEY_BYTES);
  await replacePrivateFile(keyPath(serverFolder), key);
  return key;
}

function keyPath(serverFolder: string): string {
  // SAFETY: a fixed name in the server's own folder, which only the server's user can write.
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
