import { link, lstat, open, rm, unlink } from 'node:fs/promises';
import { dirname } from 'node:path';
import { isErrno } from '@svc/contract/errno';
import { PlatformError } from '@svc/contract/errors';
import { BrokenPipeGuard } from '../terminal/broken-pipe.ts';
import { UsageError } from '../usage-error.ts';

type Write = (bytes: Buffer) => Promise<void>;

/** Creates a file with mode 0600 that `fill` writes. It gets its name when it is complete. */
export async function writePrivateFile<Result>(
  path: string,
  fill: (write: Write) => Promise<Result>,
): Promise<Result> {
  if (await isThere(path)) throw taken(path);
  const draft = `${path}.unfinished`;
  // Of a backup that was killed.
  await rm(draft, { force: true });
  let isFull = false;
  try {
    // SAFETY: made here, with this mode from the first moment; `wx` follows no link and takes no file that is there.
    await using file = await open(draft, 'wx', 0o600);
    const noteFull = (error: unknown) => {
      isFull = isErrno(error, 'ENOSPC', 'EDQUOT');
      throw error;
    };
    const result = await fill(async (bytes) => {
      for (let done = 0; done < bytes.length;)
        done += (await file.write(bytes, done).catch(noteFull)).bytesWritten;
    });
    await file.sync().catch(noteFull);
    // Unlike a rename, a link never replaces an existing file.
    await link(draft, path);
    await syncFolder(dirname(path));
    return result;
  } catch (error) {
    if (isErrno(error, 'EEXIST')) throw taken(path);
    throw isFull ? diskFullError(path, error) : error;
  } finally {
    await unlink(draft).catch(() => undefined);
  }
}

async function isThere(path: string): Promise<boolean> {
  return await lstat(path).then(
    () => true,
    () => false,
  );
}

function taken(path: string): UsageError {
  return new UsageError(`${path} is there already\n  try: another name, or remove it`);
}

function diskFullError(path: string, cause: unknown): PlatformError {
  const message = `the disk of ${path} has too little room for the backup, so there is none`;
  const remedy = 'make room, choose another place, or leave disks out with --no-disks';
  return new PlatformError('insufficient_storage', `${message}\n  try: ${remedy}`, { cause });
}

/** Like `writePrivateFile`, to standard output. */
export async function writeOutput<Result>(fill: (write: Write) => Promise<Result>): Promise<Result> {
  if (process.stdout.isTTY)
    throw new UsageError('a backup is not for a terminal\n  try: svc backup - > FILE, or svc backup FILE');
  // A broken pipe fails the backup: it must not end as if it were complete.
  using pipe = new BrokenPipeGuard();
  const broken = pipe.broken.then(() => {
    throw new Error('the reader of the backup closed the pipe: the backup is incomplete');
  });
  broken.catch(() => undefined);
  const write = async (bytes: Buffer) => {
    const written = new Promise<void>((resolve, reject) =>
      process.stdout.write(bytes, (error) => (error ? reject(error) : resolve())),
    );
    await Promise.race([written, broken]);
  };
  return await fill(write);
}

async function syncFolder(path: string): Promise<void> {
  await using folder = await open(path, 'r');
  await folder.sync();
}
