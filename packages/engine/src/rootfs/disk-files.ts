import { existsSync } from 'node:fs';
import { open, rename, stat, truncate, unlink } from 'node:fs/promises';
import { isErrno } from '@svc/contract/errno';
import { PlatformError } from '@svc/contract/errors';
import { allocatedBytesOf } from '../host/allocated-bytes.ts';
import { runTool, ToolFailed } from '../host/run-tool.ts';

/** e2fsck: 1 and 2 mean that it repaired something. */
const REPAIRED = [0, 1, 2];

/** Renames the file when it is complete: `path` exists completely or not at all, also after a crash. */
export async function wholeFile(path: string, make: (unfinished: string) => Promise<void>): Promise<void> {
  const unfinished = `${path}.new`;
  await removeImage(unfinished);
  try {
    await make(unfinished);
  } catch (error) {
    await removeImage(unfinished);
    throw error;
  }
  await rename(unfinished, path);
}

/** Asynchronous, because removing a full image takes a while; succeeds when it does not exist. */
export async function removeImage(path: string): Promise<void> {
  if (!existsSync(path)) return;
  await unlink(path).catch((error: unknown) => {
    if (!isErrno(error, 'ENOENT')) throw error;
  });
}

/** The size of a sparse file on the host's disk. */
export async function allocatedBytes(file: string): Promise<number> {
  return allocatedBytesOf(await stat(file));
}

export async function flush(path: string): Promise<void> {
  const file = await open(path, 'r+');
  try {
    await file.sync();
  } finally {
    await file.close();
  }
}

/**
 * Grows the file system of an unmounted disk to `bytes`. When interrupted, the disk is unusable. A disk that was made smaller than a block
 * group (128 MiB) keeps its few inodes per group.
 */
export async function growDisk(image: string, bytes: number, signal: AbortSignal): Promise<void> {
  try {
    await runTool('e2fsck', ['-f', '-p', image], signal, REPAIRED);
    await truncate(image, bytes);
    await runTool('resize2fs', [image], signal);
  } catch (error) {
    if (!(error instanceof ToolFailed)) throw error;
    const said = error.message.replaceAll(image, 'the disk');
    throw new PlatformError('start_failed', `The disk could not be made larger: ${said}`, { cause: error });
  }
}
