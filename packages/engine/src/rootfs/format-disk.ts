import { open, rm, truncate } from 'node:fs/promises';
import { runTool } from '../host/run-tool.ts';

const BLOCK_BYTES = 4096;
/** ext4 reserves 2 % of the blocks, at most this many, for delayed allocation. */
const MAX_RESERVED_BLOCKS = 4096;
/** Offsets of the number of free blocks, low and high half: https://docs.kernel.org/filesystems/ext4/super.html */
const FREE_BLOCKS_LOW = 1024 + 0x0c;
const FREE_BLOCKS_HIGH = 1024 + 0x1_58;

/** Formats `image` as a sparse ext4 file system with the content of `content` and space for `sizeMib` of files. */
export async function formatDisk(image: string, content: string, sizeMib: number): Promise<void> {
  const wantedBlocks = (sizeMib * 2 ** 20) / BLOCK_BYTES;
  let blocks = wantedBlocks;
  for (;;) {
    await rm(image, { force: true });
    await (await open(image, 'wx', 0o600)).close();
    await truncate(image, blocks * BLOCK_BYTES);
    await makeFileSystem(image, content);
    const reserved = Math.min(Math.floor(blocks / 50), MAX_RESERVED_BLOCKS);
    const missing = wantedBlocks - ((await freeBlocks(image)) - reserved);
    if (missing <= 0) return;
    // The added blocks need metadata too.
    blocks += Math.ceil(missing * 1.05) + 1;
  }
}

async function makeFileSystem(image: string, content: string): Promise<void> {
  const features = '^has_journal,^resize_inode';
  const layout = ['-b', String(BLOCK_BYTES), '-I', '256', '-i', '16384', '-m', '0', '-O', features];
  const lazy = ['-E', 'lazy_itable_init=1,nodiscard,root_owner=0:0'];
  await runTool('mkfs.ext4', ['-q', '-F', ...layout, ...lazy, '-d', content, image]);
  await runTool('debugfs', ['-w', '-R', 'rmdir lost+found', image]);
}

async function freeBlocks(image: string): Promise<number> {
  const file = await open(image, 'r');
  try {
    const { buffer } = await file.read(Buffer.alloc(FREE_BLOCKS_HIGH + 4), 0, FREE_BLOCKS_HIGH + 4, 0);
    return buffer.readUInt32LE(FREE_BLOCKS_HIGH) * 2 ** 32 + buffer.readUInt32LE(FREE_BLOCKS_LOW);
  } finally {
    await file.close();
  }
}
