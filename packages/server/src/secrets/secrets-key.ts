import { randomBytes } from 'node:crypto';
import { readFileSync, statSync } from 'node:fs';
import { isErrno } from '@svc/contract/errno';
import { PlatformError } from '@svc/contract';
import { createPrivateFile, replacePrivateFile } from '../host/private-file.ts';

const KEY_BYTES = 32;
const OTHERS = 0o077;
const HEAD = `# Keys that secrets in the database are sealed with, one per line in base64. The first one seals, all of them open.
# With this file and the database the secrets can be read; without this file they cannot.
`;

/** The first one seals, all of them open. */
export type SecretsKeys = readonly [Uint8Array, ...Uint8Array[]];

/** Makes the file with one new key when there is none. @throws PlatformError with the way out */
export async function ensureSecretsKeys(path: string): Promise<SecretsKeys> {
  try {
    if (!isThere(path)) await createPrivateFile(path, format([newKey()]));
  } catch (error) {
    if (!isErrno(error, 'EACCES', 'ENOENT')) throw error;
    const hint = `the secrets key file ${path} cannot be made; make its folder, and give it to the user that the server runs as`;
    throw new PlatformError('forbidden', hint, { cause: error });
  }
  return readSecretsKeys(path);
}

/**
 * The keys as the file has them at the moment, so that a running server follows a rotation. The file is read again only
 * after it changed.
 */
export function followSecretsKeys(path: string): () => SecretsKeys {
  let seen = '';
  let keys: SecretsKeys | undefined;
  return () => {
    const { ino, mtimeMs, size } = statSync(path);
    const version = `${ino}:${mtimeMs}:${size}`;
    if (keys === undefined || version !== seen) keys = readSecretsKeys(path);
    seen = version;
    return keys;
  };
}

/** @throws PlatformError when others may read the file, or it holds no keys. The content is never part of a message. */
export function readSecretsKeys(path: string): SecretsKeys {
  const lines = readPrivateText(path)
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '' && !line.startsWith('#'));
  const [first, ...more] = lines.map((line) => Buffer.from(line, 'base64'));
  const isWhole = [first, ...more].every((key) => key?.length === KEY_BYTES);
  if (first !== undefined && isWhole) return [first, ...more];
  const hint = `${path} must hold keys of ${KEY_BYTES} bytes, one per line in base64; restore it from a backup`;
  throw new PlatformError('internal', hint);
}

/** Puts a new key first. The one that was first stays, for values that are being sealed right now; older ones go. */
export async function renewSecretsKeys(path: string): Promise<void> {
  const [current] = readSecretsKeys(path);
  await replacePrivateFile(path, format([newKey(), current]));
}

function readPrivateText(path: string): string {
  try {
    const text = readFileSync(path, 'utf8');
    // SAFETY: checked on what was read, so that a file that others may read is never used.
    if ((statSync(path).mode & OTHERS) === 0) return text;
  } catch (error) {
    throw unreadable(path, error);
  }
  throw new PlatformError('forbidden', `others may read the secrets key file; run: chmod 600 ${path}`);
}

function unreadable(path: string, error: unknown): unknown {
  if (isErrno(error, 'ENOENT')) {
    const hint = `there is no secrets key file ${path}; a server makes it when it starts`;
    return new PlatformError('not_found', hint, { cause: error });
  }
  if (!isErrno(error, 'EACCES')) return error;
  const hint = `the secrets key file ${path} belongs to another user than the one that the server runs as`;
  return new PlatformError('forbidden', hint, { cause: error });
}

function isThere(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false }) !== undefined;
}

function newKey(): Uint8Array {
  return randomBytes(KEY_BYTES);
}

function format(keys: readonly Uint8Array[]): Uint8Array {
  return Buffer.from(HEAD + keys.map((key) => `${Buffer.from(key).toString('base64')}\n`).join(''));
}
