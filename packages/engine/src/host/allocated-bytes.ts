/** The unit of `st_blocks`, independent of the block size of the file system. */
const STAT_BLOCK_BYTES = 512;

/** The disk space that a sparse file takes, by its status; 0 when it does not exist. */
export function allocatedBytesOf(status: { readonly blocks: number } | undefined): number {
  return (status?.blocks ?? 0) * STAT_BLOCK_BYTES;
}
