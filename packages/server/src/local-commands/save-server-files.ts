import { constants, open, rm, type FileHandle } from 'node:fs/promises';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { PlatformError } from '@svc/contract';
import { isErrno } from '@svc/contract/errno';
import { requireNoted } from '../store/store-note.ts';
import type { StorePlace } from './local-store.ts';
import { LENGTH_BYTES, NO_FILE, SECRETS_KEY, SERVER_FILES, STORE } from './server-files.ts';

const CHUNK_BYTES = 1024 * 1024;
const BUSY_TIMEOUT_MS = 30_000;
/** Keys are small. A file that the server's user put in their place could be sparse and huge, and a backup has no room for it. */
const MAX_KEY_BYTES = 64 * 1024;

/**
 * Writes each of `SERVER_FILES`: its length, then its bytes. The store is copied in one consistent state, while the server runs. Works
 * as the current user: root calls `becomeServerUser` first.
 * @throws PlatformError when there is no store, or a name is no file
 */
export async function saveServerFiles(
  { dataFolder, databaseUrl }: StorePlace,
  { secretsKey }: { readonly secretsKey?: string | undefined },
  write: (bytes: Uint8Array) => Promise<void>,
): Promise<void> {
  // Files that SQLite creates are private too.
  process.umask(0o077);
  const folder = join(dataFolder, 'server');
  await requireNoted({ databaseUrl: databaseUrl ?? null, serverFolder: folder });
  for (const name of SERVER_FILES) {
    const isElsewhere = name === STORE && databaseUrl !== undefined;
    const path = name === SECRETS_KEY && secretsKey !== undefined ? secretsKey : join(folder, name);
    await using file = isElsewhere
      ? undefined
      : name === STORE
        ? await openStoreCopy(folder)
        : await openKey(path);
    await writeFile(file, write);
  }
}

async function writeFile(
  file: FileHandle | undefined,
  write: (bytes: Uint8Array) => Promise<void>,
): Promise<void> {
  const length = Buffer.alloc(LENGTH_BYTES);
  const size = file === undefined ? null : (await file.stat()).size;
  length.writeBigUInt64BE(size === null ? NO_FILE : BigInt(size));
  await write(length);
  if (file === undefined || size === null) return;
  for (let done = 0; done < size;) {
    const bytes = Buffer.alloc(Math.min(CHUNK_BYTES, size - done));
    const { bytesRead } = await file.read(bytes, 0, bytes.length, done);
    if (bytesRead === 0) throw new Error('a file of the server became shorter while it was read');
    await write(bytes.subarray(0, bytesRead));
    done += bytesRead;
  }
}

/** Already unlinked, so it is deleted with the process. */
async function openStoreCopy(folder: string): Promise<FileHandle> {
  const [path, copy] = [join(folder, STORE), join(folder, 'store-copy.db')];
  await using store = await openFile(path);
  if (store === undefined) {
    const remedy = '--path with the data folder of the server, or --database when it uses PostgreSQL';
    throw new PlatformError('not_found', `there is no store in ${folder}\n  try: ${remedy}`);
  }
  await rm(copy, { force: true });
  const database = new DatabaseSync(path, { timeout: BUSY_TIMEOUT_MS });
  try {
    // A single read transaction, which writers do not disturb; SQLite's online backup restarts after each write.
    database.prepare('vacuum into ?').run(copy);
  } finally {
    database.close();
  }
  const file = await openFile(copy);
  await rm(copy);
  return file ?? missingCopy();
}

function missingCopy(): never {
  throw new Error('the copy of the store is gone');
}

/** As `openFile`. @throws PlatformError also when it is too large for a key */
async function openKey(path: string): Promise<FileHandle | undefined> {
  const file = await openFile(path);
  if (file === undefined || (await file.stat()).size <= MAX_KEY_BYTES) return file;
  await file.close();
  throw new PlatformError('forbidden', `${path} is too large for a key; it is not backed up`);
}

/** Undefined: there is no such file, or it is a link, or a file whose opening would block. */
async function openFile(path: string): Promise<FileHandle | undefined> {
  let file: FileHandle;
  try {
    file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch (error) {
    if (isErrno(error, 'ENOENT')) return undefined;
    throw error;
  }
  if ((await file.stat()).isFile()) return file;
  await file.close();
  throw new PlatformError('forbidden', `${path} is no file; it is not backed up`);
}
