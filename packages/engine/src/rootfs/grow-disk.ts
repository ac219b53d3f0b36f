import { truncate } from 'node:fs/promises';
import { runTool } from '../host/run-tool.ts';

/** e2fsck: 1 and 2 mean that it repaired something. */
const REPAIRED = [0, 1, 2];

/**
 * Lets the file system of a disk that is not mounted fill `bytes`. Interrupted, the disk is of no use any more.
 * A disk that began with less than a block group (128 MiB) keeps the few inodes per group that it was made with.
 */
export async function growDisk(image: string, bytes: number, signal: AbortSignal): Promise<void> {
  await runTool('e2fsck', ['-f', '-p', image], signal, REPAIRED);
  await truncate(image, bytes);
  await runTool('resize2fs', [image], signal);
}
