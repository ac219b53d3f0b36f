import { createReadStream } from 'node:fs';
import { mkdir, readdir, stat } from 'node:fs/promises';
import { join, posix } from 'node:path';
import { SvcError, type Volume } from '@svc/sdk';
import { CopyProgress } from '../terminal/copy-progress.ts';
import { reportEntry } from '../terminal/print.ts';
import { UsageError } from '../usage-error.ts';
import { localDestination, remoteDestination } from './destination.ts';
import { isSpecial, kindOf, requireFileOrFolder } from './special-file.ts';
import { writeLocal, writeStdout } from './write-local.ts';

const CHUNK_BYTES = 1024 * 1024;

/** Paths of volumes are relative to them; people write them from the root. */
function inVolume(path: string): string {
  return path.replace(/^\/+|\/+$/g, '');
}

/** A file or a folder of this machine into a volume. Links are followed: a volume's API knows none. */
export async function uploadToVolume(volume: Volume, from: string, to: string): Promise<void> {
  const stats = await stat(from).catch(() => {
    throw new UsageError(`there is no ${from} here\n  try: ls ${from}`);
  });
  requireFileOrFolder(from, stats);
  using progress = new CopyProgress(stats.isDirectory() ? null : stats.size);
  const visit = async (local: string, remote: string): Promise<void> => {
    const found = await stat(local);
    if (isSpecial(found)) return reportEntry(`left out ${local}: it is ${kindOf(found)}`);
    if (!found.isDirectory()) {
      const content = createReadStream(local, { highWaterMark: CHUNK_BYTES });
      return await volume.files.write(inVolume(remote), progress.counted(content));
    }
    if (inVolume(remote) !== '') await volume.files.mkdir(inVolume(remote));
    for (const name of await readdir(local)) await visit(join(local, name), posix.join(remote, name));
  };
  await visit(from, remoteDestination(to, from, await isFolder(volume, to)));
}

export async function uploadStdinToVolume(volume: Volume, to: string): Promise<void> {
  await volume.files.write(inVolume(to), process.stdin);
}

/** A file or a folder of a volume to this machine. */
export async function downloadFromVolume(volume: Volume, from: string, to: string): Promise<void> {
  using progress = new CopyProgress(null);
  const visit = async (remote: string, local: string): Promise<void> => {
    const info = inVolume(remote) === '' ? null : await volume.files.stat(inVolume(remote));
    if (info?.kind === 'file') {
      await writeLocal(local, info.mode, progress.counted(volume.files.readStream(inVolume(remote))));
      return;
    }
    await mkdir(local, { recursive: true });
    for (const { path } of await volume.files.list(inVolume(remote))) {
      // SAFETY: the last part of a path, which holds no slash; sandboxes may have written anything there.
      const name = posix.basename(path);
      if (name !== '' && name !== '.' && name !== '..')
        await visit(posix.join(remote, name), join(local, name));
    }
  };
  await visit(from, await localDestination(to, from));
}

export async function downloadVolumeToStdout(volume: Volume, from: string): Promise<void> {
  await writeStdout(volume.files.readStream(inVolume(from)));
}

async function isFolder(volume: Volume, path: string): Promise<boolean> {
  if (inVolume(path) === '') return true;
  try {
    return (await volume.files.stat(inVolume(path))).kind === 'directory';
  } catch (error) {
    if (SvcError.is(error, 'volume_file_not_found')) return false;
    throw error;
  }
}
