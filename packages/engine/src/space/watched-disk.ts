import { statfsSync, statSync, type StatsFs } from 'node:fs';
import { isErrno } from '@svc/contract/errno';
import { allocatedBytesOf } from '../host/allocated-bytes.ts';
import { DiskLimit } from './disk-limit.ts';

/** A file system that guests write to: a sparse image of the host's disk on a loop device. */
export interface MountedDisk {
  readonly kind: 'sandbox' | 'volume';
  /** Identifies the disk among those of its kind. */
  readonly key: string;
  readonly image: string;
  readonly mountPoint: string;
  /** e.g. `loop7` */
  readonly device: string;
}

export interface DiskSample {
  readonly usedBytes: number;
  /** Free inside the file system; the grant may be smaller. */
  readonly freeBytes: number;
  /** The size of the image on the host's disk. */
  readonly allocatedBytes: number;
  /** Acknowledged to the guest, or reserved by it, and not on the host's disk yet: it still needs this much space. */
  readonly owedBytes: number;
}

/** A mounted disk, its last sample, and its grant. */
export class WatchedDisk {
  readonly disk: MountedDisk;
  readonly #limit: DiskLimit;
  readonly #mount: number;
  #blockBytes = 4096;
  #latest: DiskSample | undefined;
  /** The file system of the latest sample. Another file system at this path has another type, size or fill. */
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

  /** The bytes it could use without a limit. */
  get usableBytes(): number {
    return Math.max(0, (this.#latest?.freeBytes ?? 0) - this.#limit.leastBlocks * this.#blockBytes);
  }

  get grantedBytes(): number {
    return Math.min(this.#grantedBytes, this.usableBytes);
  }

  /**
   * Undefined when it is not mounted any more. The same object as before when nothing has changed: hundreds of disks are checked four times
   * a second, most of them idle, and one call is enough to detect that.
   */
  sample(): DiskSample | undefined {
    const { disk } = this;
    const found = statfsIfThere(disk.mountPoint);
    if (found === undefined) return undefined;
    const { type, blocks, bfree, bsize } = found;
    // When all acknowledged data is on the host's disk, that is unchanged too.
    if (this.#seen === `${type} ${blocks} ${bfree}` && this.#latest?.owedBytes === 0) return this.#latest;
    const image = statSync(disk.image, { throwIfNoEntry: false });
    const isMounted = statSync(disk.mountPoint, { throwIfNoEntry: false })?.dev === this.#mount;
    if (image === undefined || !isMounted) return undefined;
    this.#blockBytes = bsize;
    const usedBytes = (blocks - bfree) * bsize;
    const allocatedBytes = allocatedBytesOf(image);
    const owedBytes = Math.max(0, usedBytes - allocatedBytes);
    this.#seen = `${type} ${blocks} ${bfree}`;
    this.#latest = { usedBytes, freeBytes: bfree * bsize, allocatedBytes, owedBytes };
    return this.#latest;
  }

  /**
   * Sets how much more it may use than in its sample. Its use since then counts, so no space is granted twice. A slightly larger grant is
   * not worth a call; a smaller one always is.
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
