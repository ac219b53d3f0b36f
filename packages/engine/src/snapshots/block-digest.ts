import { createHash, hash, type Hash } from 'node:crypto';
import { open } from 'node:fs/promises';
import type { DataRange } from './data-ranges.ts';

/** Block size of the digests; the last block of a disk may be shorter. */
const BLOCK_BYTES = 64 * 1024;
const DIGEST_OF_ZEROS = hash('sha256', Buffer.alloc(BLOCK_BYTES), 'buffer');
/** Number of digests of zero blocks that are hashed at once. */
const BATCH = Buffer.concat(Array.from({ length: 1024 }, () => DIGEST_OF_ZEROS));

/**
 * The digest of a disk: SHA-256 of the SHA-256 of each of its blocks, in order. It depends on the content only, not on whether zeros are
 * stored as holes. Most of a disk is zeros, which need not be read: 4 GiB of them take 2 MiB of digests.
 * `ranges`: in order, all that is not zero lies in them.
 */
export async function digestBlocks(path: string, ranges: readonly DataRange[]): Promise<string> {
  await using file = await open(path, 'r');
  const { size } = await file.stat();
  const digest = createHash('sha256');
  const block = Buffer.alloc(BLOCK_BYTES);
  let at = 0;
  const addHoleUntil = (end: number) => {
    const blocks = Math.max(0, Math.floor((end - at) / BLOCK_BYTES));
    addZeros(digest, blocks);
    at += blocks * BLOCK_BYTES;
  };
  // The rest of the last block is read, hole or not.
  for (const { start, end } of [...ranges, { start: size, end: size }]) {
    addHoleUntil(start);
    while (at < end) {
      const wanted = Math.min(BLOCK_BYTES, size - at);
      for (let got = 0; got < wanted;) {
        const { bytesRead } = await file.read(block, got, wanted - got, at + got);
        if (bytesRead === 0) throw new Error('the disk became shorter while it was hashed');
        got += bytesRead;
      }
      digest.update(hash('sha256', block.subarray(0, wanted), 'buffer'));
      at += wanted;
    }
  }
  return `sha256:${digest.digest('hex')}`;
}

function addZeros(digest: Hash, blocks: number): void {
  let left = blocks * DIGEST_OF_ZEROS.length;
  for (; left >= BATCH.length; left -= BATCH.length) digest.update(BATCH);
  digest.update(BATCH.subarray(0, left));
}
