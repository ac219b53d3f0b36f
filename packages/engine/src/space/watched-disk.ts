import { statfsSync, statSync, type StatsFs } from 'node:fs';
import { isErrno } from '@svc/contract/errno';
import { DiskLimit } from './disk-limit.ts';

const STAT_BLOCK_BYTES = 512;

/** A file system of ours that guests write to: a sparse image of the host's disk on a loop device. */
export interface MountedDisk {
  readonly kind: 'sandbox' | 'volume';
  /** Names it among those of its kind. */
  readonly key: string;
  readonly image: string;
  readonly mountPoint: string;
  /** e.g. `loop7` */
  readonly device: string;
}

export interface DiskSample {
  readonly usedBytes: number;
  /** Free inside; what may be used of it is another matter. */
  readonly freeBytes: number;
  /** What the image takes on the host's disk. */
  readonly allocatedBytes: number;
  /** Was acknowledged to the guest, or set aside by it, and is not on the host's disk yet: the host owes it this much room. */
  readonly owedBytes: number;
}

/** A mounted disk, what was last seen of it, and how much more it may use. */
export class WatchedDisk {
  readonly disk: MountedDisk;
  readonly #limit: DiskLimit;
  readonly #mount: number;
  #blockBytes = 4096;
  #latest: DiskSample | undefined;
  /** What the latest sample is of. What another file system says at this place is another kind, size or fill. */
  #seen = '';
  #grantedBytes = Number.POSITIVE_INFINITY;

  /** @throws where it cannot be limited */
  constructor(disk: MountedDisk) {
    this.disk = disk;
    this.#mount = statSync(disk.mountPoint).dev;
    this.#limit = new DiskLimit(disk.device, statSync(disk.image).size / this.#blockBytes);
  }

  get latest(): DiskSample | undefined {
    return this.#latest;
  }

  /** What it could use if it were let. */
  get usableBytes(): number {
    return Math.max(0, (this.#latest?.freeBytes ?? 0) - this.#limit.leastBlocks * this.#blockBytes);
  }

  get grantedBytes(): number {
    return Math.min(this.#grantedBytes, this.usableBytes);
  }

  /**
   * Undefined when it is not mounted any more. The same object as before when nothing has changed: hundreds of disks are looked at four
   * times a second, most of them idle, and one call is enough to see that.
   */
  sample(): DiskSample | undefined {
    const { disk } = this;
    const found = statfsIfThere(disk.mountPoint);
    if (found === undefined) return undefined;
    const { type, blocks, bfree, bsize } = found;
    // With all that the guest was told of on the host's disk, that has nothing to add either.
    if (this.#seen === `${type} ${blocks} ${bfree}` && this.#latest?.owedBytes === 0) return this.#latest;
    const image = statSync(disk.image, { throwIfNoEntry: false });
    const isMounted = statSync(disk.mountPoint, { throwIfNoEntry: false })?.dev === this.#mount;
    if (image === undefined || !isMounted) return undefined;
    this.#blockBytes = bsize;
    const usedBytes = (blocks - bfree) * bsize;
    const allocatedBytes = image.blocks * STAT_BLOCK_BYTES;
    const owedBytes = Math.max(0, usedBytes - allocatedBytes);
    this.#seen = `${type} ${blocks} ${bfree}`;
    this.#latest = { usedBytes, freeBytes: bfree * bsize, allocatedBytes, owedBytes };
    return this.#latest;
  }

  /**
   * Lets it use that much more than it did when it was sampled. What it used since counts, so nothing is given twice. A little more
   * than before is not worth a call; less always is.
   */
  grant(bytes: number): void {
    const { freeBytes } = this.#latest ?? { freeBytes: 0 };
    const kept = Math.ceil(Math.max(0, freeBytes - bytes) / this.#blockBytes);
    const change = (this.#limit.keptBlocks - Math.max(kept, this.#limit.leastBlocks)) * this.#blockBytes;
    this.#grantedBytes = bytes;
    if (change < 0 || change > bytes / 16) this.#limit.keep(kept);
  }
}

function statfsIfThere(folder: string): StatsFs | undefined {
  try {
    return statfsSync(folder);
  } catch (error) {
    if (isErrno(error, 'ENOENT')) return undefined;
    throw error;
  }
}
