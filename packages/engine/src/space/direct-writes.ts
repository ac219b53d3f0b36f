import { readFileSync, statfsSync } from 'node:fs';
import type { Logger } from 'pino';
import type { HostCalls } from '../host/host-calls.ts';
import { readHostWrites } from './host-writes.ts';
import type { MountedDisk } from './watched-disk.ts';

const SECTOR_BYTES = 512;
/** Between two looks. */
const A_LOT_BYTES = 8 * 2 ** 20;
/**
 * ext4 and XFS. Others keep sums of what they were given (btrfs), and a guest may change a page that is on its way to the disk; or have
 * no such way at all.
 */
const FILE_SYSTEMS: ReadonlySet<number> = new Set([0xef53, 0x5846_5342]);

interface Disk {
  readonly disk: MountedDisk;
}

/**
 * Loop devices copy what a guest writes to the page cache of the host once more, in threads of the kernel: processor time that no limit
 * of the guest counts, and that its neighbours lose. The disks of guests that write a lot go past it.
 */
export class DirectWrites {
  readonly #calls: Pick<HostCalls, 'writeDirectly'>;
  readonly #logger: Logger;
  readonly #isPossible: boolean;
  /** By device, at the last look; empty when nobody had written a lot then. */
  #written = new Map<string, number>();
  /** By all of the host, at the last look; not a number where the kernel does not say. */
  #sentBytes = Number.NaN;
  readonly #asked = new WeakSet<Disk>();

  /** `folder`: where the images are. */
  constructor(folder: string, calls: Pick<HostCalls, 'writeDirectly'>, logger: Logger) {
    this.#calls = calls;
    this.#logger = logger;
    this.#isPossible = FILE_SYSTEMS.has(statfsSync(folder).type);
  }

  /** To be called now and then with all disks that are mounted. */
  look(disks: readonly Disk[]): void {
    if (!this.#isPossible || disks.length === 0) return;
    const { sentBytes } = readHostWrites();
    const isLittle = sentBytes - this.#sentBytes < A_LOT_BYTES;
    this.#sentBytes = sentBytes;
    // Hundreds of devices are not asked what they have of it. One that goes on writing is seen at the look after the next.
    const written = isLittle ? new Map<string, number>() : readWritten();
    for (const watched of disks) {
      const { device } = watched.disk;
      const before = this.#written.get(device);
      const bytes = (written.get(device) ?? 0) - (before ?? Number.POSITIVE_INFINITY);
      if (bytes >= A_LOT_BYTES && !this.#asked.has(watched)) this.#ask(watched);
    }
    this.#written = written;
  }

  #ask(watched: Disk): void {
    this.#asked.add(watched);
    const { image, device } = watched.disk;
    this.#calls.writeDirectly(image, `/dev/${device}`).catch((error: unknown) => {
      // Unmounted meanwhile, or a disk with larger sectors: then it goes on as before.
      this.#logger.info({ err: error, device }, 'a disk is written to through the page cache');
    });
  }
}

/** Bytes by loop device, since the host was started. https://docs.kernel.org/admin-guide/iostats.html */
function readWritten(): Map<string, number> {
  const written = new Map<string, number>();
  for (const line of readFileSync('/proc/diskstats', 'latin1').split('\n')) {
    const [, , device = '', , , , , , , sectors] = line.trim().split(/\s+/);
    if (device.startsWith('loop')) written.set(device, Number(sectors) * SECTOR_BYTES);
  }
  return written;
}
