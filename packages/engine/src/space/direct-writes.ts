import { statfsSync } from 'node:fs';
import type { Logger } from 'pino';
import type { HostCalls } from '../host/host-calls.ts';
import type { MountedDisk } from './watched-disk.ts';

/**
 * ext4 and XFS. btrfs keeps checksums, which fail when a guest changes a page while it is written; tmpfs has no direct I/O.
 */
const FILE_SYSTEMS: ReadonlySet<number> = new Set([0xef53, 0x5846_5342]);

/**
 * Switches disks to direct I/O when they are mounted. Otherwise a loop device copies a guest's writes into the page cache of the host a
 * second time. Those pages cost CPU time in kernel threads that no limit of the guest covers; with cgroup v2 they count as memory of the
 * guest, which is killed as out of memory when the host's disk is slower than its writes.
 */
export class DirectWrites {
  readonly #calls: Pick<HostCalls, 'writeDirectly'>;
  readonly #logger: Logger;
  readonly #isPossible: boolean;

  /** `folder`: where the images are. */
  constructor(folder: string, calls: Pick<HostCalls, 'writeDirectly'>, logger: Logger) {
    this.#calls = calls;
    this.#logger = logger;
    this.#isPossible = FILE_SYSTEMS.has(statfsSync(folder).type);
  }

  /** Returns at once: the image is written out first, which no start waits for. */
  begin({ image, device }: MountedDisk): void {
    if (!this.#isPossible) return;
    this.#calls.writeDirectly(image, `/dev/${device}`).catch((error: unknown) => {
      // Unmounted meanwhile, or a disk with larger sectors: it keeps using the page cache.
      this.#logger.info({ err: error, device }, 'a disk is written to through the page cache');
    });
  }
}
