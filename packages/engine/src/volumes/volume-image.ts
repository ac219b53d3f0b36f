import { open, stat, truncate } from 'node:fs/promises';
import type { VolumeUsage } from '@svc/contract/orchestrator';
import { runTool, ToolFailed } from '../host/run-tool.ts';
import { heldImage } from '../space/image-holder.ts';

const MIB = 1024 * 1024;
const BLOCK_BYTES = 4096;
/** One inode of 256 bytes per this many bytes: enough for trees of small source files. */
const BYTES_PER_INODE = 8192;
/** The fixed part of the file system's overhead. */
const FIXED_OVERHEAD_BYTES = 3 * MIB;
const MAX_GROWTH_RESERVE_BYTES = 72 * MIB;
/** The kernel reserves a fiftieth, but at most this. */
const MAX_KERNEL_RESERVE_BYTES = 16 * MIB;
/** How long a just unmounted device may still be in use. */
const LOCK_WAIT_SECONDS = '10';
/** The exit code of `flock` for that; none of our tools uses it. */
const BUSY_STATUS = 75;
/** e2fsck: 1 and 2 mean that it repaired something. */
const REPAIRED = [0, 1, 2];

/**
 * Size of the image whose file system offers `capacityMib` for files. Inode tables take 1/32; the journal, the kernel's reserve and the
 * space for growth take more; all of it is sparse. Files get the promised capacity and at most 4 MiB or 1 % more.
 */
export function imageBytes(capacityMib: number): number {
  const capacityBytes = capacityMib * MIB;
  const inodeTables = capacityBytes / 31;
  const growthReserve = Math.min(capacityBytes / 256, MAX_GROWTH_RESERVE_BYTES);
  const kernelReserve = Math.min(capacityBytes / 50, MAX_KERNEL_RESERVE_BYTES);
  const overhead = inodeTables + growthReserve + kernelReserve + journalMib(capacityMib) * MIB;
  const bytes = capacityBytes + overhead + FIXED_OVERHEAD_BYTES;
  return Math.ceil(bytes / BLOCK_BYTES) * BLOCK_BYTES;
}

/** Makes a sparse image with an empty file system: root folder 0:0 0755, a journal, no lost+found. */
export async function formatImage(image: string, capacityMib: number, signal: AbortSignal): Promise<void> {
  const file = await open(image, 'wx', 0o600);
  try {
    await file.truncate(imageBytes(capacityMib));
  } finally {
    await file.close();
  }
  // Newer tools add an internal file, which would count as the user's.
  const features = ['-O', '^orphan_file'];
  const layout = [
    '-b',
    String(BLOCK_BYTES),
    '-I',
    '256',
    '-i',
    String(BYTES_PER_INODE),
    '-m',
    '0',
    ...features,
  ];
  const journal = ['-J', `size=${journalMib(capacityMib)}`, '-E', 'lazy_journal_init=1,root_owner=0:0'];
  await runTool('mkfs.ext4', ['-q', '-F', ...layout, ...journal, image], signal);
  // Users own the root of the volume and do not expect this folder in it. e2fsck creates it again when it needs it.
  await runTool('debugfs', ['-w', '-R', 'rmdir lost+found', image], signal);
}

/** Grows a mounted file system to the new capacity, which requires CAP_SYS_RESOURCE. Idempotent. */
export async function growMounted(image: string, device: string, capacityMib: number): Promise<void> {
  const size = imageBytes(capacityMib);
  if ((await stat(image)).size < size) await truncate(image, size);
  await runTool('losetup', ['--set-capacity', device]);
  await runTool('resize2fs', [device]);
}

/** Grows an unmounted file system. Idempotent. */
export async function growUnmounted(image: string, capacityMib: number): Promise<void> {
  const size = imageBytes(capacityMib);
  await runLocked(image, ['e2fsck', '-f', '-p', image], REPAIRED);
  if ((await stat(image)).size < size) await truncate(image, size);
  await runLocked(image, ['resize2fs', image], [0]);
}

/** Shrinks an unmounted file system. Never interrupted half-way: the file is truncated only after its file system has become smaller. */
export async function shrinkUnmounted(image: string, capacityMib: number): Promise<void> {
  const size = imageBytes(capacityMib);
  await runLocked(image, ['e2fsck', '-f', '-p', image], REPAIRED);
  await runLocked(image, ['resize2fs', image, String(size / BLOCK_BYTES)], [0]);
  await truncate(image, size);
}

/** Repairs an unmounted file system in which the kernel found errors. */
export async function repairUnmounted(image: string): Promise<void> {
  await runLocked(image, ['e2fsck', '-f', '-y', image], REPAIRED);
}

/** Bytes in use, from the superblock of a cleanly unmounted image. */
export async function readUsedBytes(image: string): Promise<number> {
  const superblock = Buffer.alloc(SUPERBLOCK_BYTES);
  const file = await open(image, 'r');
  try {
    await file.read(superblock, 0, SUPERBLOCK_BYTES, SUPERBLOCK_BYTES);
  } finally {
    await file.close();
  }
  // https://docs.kernel.org/filesystems/ext4/super.html; our images are far below 2^53 bytes.
  const blocks = superblock.readUInt32LE(0x4) + superblock.readUInt32LE(0x150) * 2 ** 32;
  const free = superblock.readUInt32LE(0xc) + superblock.readUInt32LE(0x158) * 2 ** 32;
  const overhead = superblock.readUInt32LE(0x248);
  return (blocks - overhead - free) * BLOCK_BYTES;
}

/**
 * An empty volume has one block, its root folder, which does not count for the user; and the file system may use slightly more than the
 * capacity.
 */
export function usageOf(usedBytes: number, capacityMib: number): VolumeUsage {
  const capacityBytes = capacityMib * MIB;
  return { usedBytes: Math.min(Math.max(0, usedBytes - BLOCK_BYTES), capacityBytes), capacityBytes };
}

const SUPERBLOCK_BYTES = 1024;

function journalMib(capacityMib: number): number {
  if (capacityMib < 512) return 4;
  return capacityMib < 16 * 1024 ? 16 : 64;
}

/**
 * SAFETY: a tool that writes to an image while a loop device uses it destroys it. A loop device locks its image, so holding the same lock
 * shows that there is none.
 */
async function runLocked(
  image: string,
  command: readonly string[],
  okStatuses: readonly number[],
): Promise<void> {
  const lock = ['--wait', LOCK_WAIT_SECONDS, '--conflict-exit-code', String(BUSY_STATUS)];
  try {
    await runTool('flock', [...lock, image, ...command], undefined, okStatuses);
  } catch (error) {
    if (error instanceof ToolFailed && error.status === BUSY_STATUS)
      throw await heldImage('volume', image, error);
    throw error;
  }
}
