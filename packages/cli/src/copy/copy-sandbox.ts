import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { posix } from 'node:path';
import { SvcError, type Sandbox } from '@svc/sdk';
import { downloadTree, uploadTree } from '@svc/sdk/node';
import { CopyProgress } from '../terminal/copy-progress.ts';
import { reportEntry } from '../terminal/print.ts';
import { UsageError } from '../usage-error.ts';
import { localDestination, remoteDestination } from './destination.ts';
import { requireFileOrFolder } from './special-file.ts';
import { writeLocal, writeStdout } from './write-local.ts';

const CHUNK_BYTES = 1024 * 1024;
const PERMISSIONS = 0o7777;

/** A file or a folder of this machine into a sandbox. */
export async function upload(sandbox: Sandbox, from: string, to: string): Promise<void> {
  const stats = await stat(from).catch(() => {
    throw new UsageError(`there is no ${from} here\n  try: ls ${from}`);
  });
  requireFileOrFolder(from, stats);
  const target = remoteDestination(to, from, await isFolder(sandbox, to));
  if (stats.isDirectory()) {
    using progress = new CopyProgress(null);
    return await named(sandbox, uploadTree(sandbox, from, target, { onFile: progress.addFile }));
  }
  using progress = new CopyProgress(stats.size);
  const content = createReadStream(from, { highWaterMark: CHUNK_BYTES });
  const mode = stats.mode & PERMISSIONS;
  await named(sandbox, sandbox.files.write(target, progress.counted(content), { mode }));
  // The mode of a write counts for new files, and the sandbox's mask takes from it.
  await sandbox.files.chmod(target, mode);
}

/** What comes on stdin becomes a file of a sandbox. */
export async function uploadStdin(sandbox: Sandbox, to: string): Promise<void> {
  using progress = new CopyProgress(null);
  await named(sandbox, sandbox.files.write(to, progress.counted(process.stdin)));
}

/** A file or a folder of a sandbox to this machine. */
export async function download(sandbox: Sandbox, from: string, to: string): Promise<void> {
  const info = await named(sandbox, sandbox.files.stat(from));
  const target = await localDestination(to, from);
  if (info.kind === 'directory') {
    using progress = new CopyProgress(null);
    const { skippedLinks } = await named(
      sandbox,
      downloadTree(sandbox, posix.normalize(from), target, { onFile: progress.addFile }),
    );
    for (const link of skippedLinks) reportEntry(`left out ${link}: it leads out of what is copied`);
    return;
  }
  using progress = new CopyProgress(info.sizeBytes);
  const content = progress.counted(sandbox.files.readStream(from));
  await named(sandbox, writeLocal(target, info.mode, content));
}

/** A file of a sandbox to stdout. */
export async function downloadToStdout(sandbox: Sandbox, from: string): Promise<void> {
  const { kind } = await named(sandbox, sandbox.files.stat(from));
  if (kind === 'directory')
    throw new UsageError(
      `${from} is a folder, and - takes one file\n  try: svc exec ${sandbox.name} tar -c ${from} > FILE`,
    );
  await named(sandbox, writeStdout(sandbox.files.readStream(from)));
}

/** Adds to an error of the sandbox the path as the user typed it. */
async function named<T>({ name }: Sandbox, work: Promise<T>): Promise<T> {
  return await work.catch((error: unknown) => {
    if (!SvcError.is(error) || error.details?.['path'] === undefined) throw error;
    throw new SvcError(error.code, `${name}:${error.message}`, { details: error.details, cause: error });
  });
}

async function isFolder(sandbox: Sandbox, path: string): Promise<boolean> {
  try {
    return (await sandbox.files.stat(path)).kind === 'directory';
  } catch (error) {
    if (SvcError.is(error, 'not_found')) return false;
    throw error;
  }
}
