import { readdirSync, readFileSync, readlinkSync, statSync, writeFileSync } from 'node:fs';
import { basename } from 'node:path';

/** The name of the block device that a folder lies on, e.g. `loop7`. */
export function deviceOf(folder: string): string {
  const { dev } = statSync(folder);
  // https://man7.org/linux/man-pages/man3/makedev.3.html, as glibc packs it
  const major = (dev >>> 8) & 0xfff;
  const minor = (dev & 0xff) | ((dev >>> 12) & 0xfff00);
  return basename(readlinkSync(`/sys/dev/block/${major}:${minor}`));
}

/** Errors that ext4 has found on a device since it was mounted, or recorded there before; 0 when unknown. */
export function countErrors(device: string): number {
  try {
    return Number(readFileSync(`/sys/fs/ext4/${device}/errors_count`, 'utf8'));
  } catch {
    // It is not mounted any more, or there is no sysfs.
    return 0;
  }
}

/** Loop devices in use, by the file behind each. */
export function devicesByImage(): Map<string, string> {
  const loops = readdirSync('/sys/block').filter((name) => name.startsWith('loop'));
  return new Map(
    loops.flatMap((name) => {
      try {
        return [[readFileSync(`/sys/block/${name}/loop/backing_file`, 'utf8').trimEnd(), name] as const];
      } catch {
        // The device is not in use.
        return [];
      }
    }),
  );
}

/**
 * Blocks of a mounted ext4 file system that are reserved even from root: a write beyond the limit fails with ENOSPC when it is made, before
 * it is acknowledged, and `df` shows the space as not available. Data written before stays writable.
 * https://docs.kernel.org/admin-guide/ext4.html (reserved_clusters)
 */
export class DiskLimit {
  readonly #file: string;
  /** The minimum reserve of ext4 itself. */
  readonly leastBlocks: number;
  #blocks: number;

  /** `blocks` is the size of the file system. @throws where the reserve cannot be read, e.g. in a container without sysfs */
  constructor(device: string, blocks: number) {
    this.#file = `/sys/fs/ext4/${device}/reserved_clusters`;
    // After a restart of the engine this is the value of the last one.
    this.#blocks = Number(readFileSync(this.#file, 'utf8'));
    this.leastBlocks = Math.min(Math.floor(blocks / 50), MOST_KEPT_BLOCKS);
  }

  get keptBlocks(): number {
    return this.#blocks;
  }

  keep(blocks: number): void {
    const wanted = Math.max(this.leastBlocks, blocks);
    if (wanted === this.#blocks) return;
    writeFileSync(this.#file, String(wanted), { flag: 'r+' });
    this.#blocks = wanted;
  }
}

/** ext4 reserves 2 % of its blocks, at most this many. */
const MOST_KEPT_BLOCKS = 4096;
