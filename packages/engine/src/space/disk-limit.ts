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

/** Errors that ext4 has found on a device since it was mounted, or noted there before; 0 where nobody can say. */
export function countErrors(device: string): number {
  try {
    return Number(readFileSync(`/sys/fs/ext4/${device}/errors_count`, 'utf8'));
  } catch {
    // Not mounted any more, or no sysfs here.
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
        // Not in use, or not any more.
        return [];
      }
    }),
  );
}

/**
 * How much of a mounted ext4 file system nobody can have, root neither: a write beyond it is ENOSPC when it is made, before anything
 * was acknowledged, and `df` shows it as not available. What was written before stays writable.
 * https://docs.kernel.org/admin-guide/ext4.html (reserved_clusters)
 */
export class DiskLimit {
  readonly #file: string;
  /** What ext4 keeps for itself in any case. */
  readonly leastBlocks: number;
  #blocks: number;

  /** `blocks`: of the whole file system. @throws where it cannot be read, e.g. in a container without sysfs */
  constructor(device: string, blocks: number) {
    this.#file = `/sys/fs/ext4/${device}/reserved_clusters`;
    // After a restart of the engine it is what the last one has set.
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

/** ext4 keeps 2 % of its blocks, at most this many. */
const MOST_KEPT_BLOCKS = 4096;
