import { statfsSync } from 'node:fs';
import type { Logger } from 'pino';
import type { HostCalls } from '../host/host-calls.ts';
import type { MountedDisk } from './watched-disk.ts';

/**
 * ext4 and XFS. Others keep checksums of what they were given (btrfs), and a guest may change a page that is on its way to the disk; or
 * have no direct I/O at all (tmpfs).
 */
const FILE_SYSTEMS: ReadonlySet<number> = new Set([0xef53, 0x5846_5342]);

/**
 * A loop device copies what a guest writes into the page cache of the host once more. Those pages cost processor time in threads of the
 * kernel that no limit of the guest counts; with cgroup v2 they count as memory of the guest, which is ended as out of memory when the
 * host's disk is slower than it writes. So every disk uses direct I/O from the moment it is mounted.
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
      // Unmounted meanwhile, or a disk with larger sectors: then it goes on as before.
      this.#logger.info({ err: error, device }, 'a disk is written to through the page cache');
    });
  }
}
