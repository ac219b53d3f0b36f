import { mkdir, readFile, statfs } from 'node:fs/promises';
import { basename } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { isErrno } from '@svc/contract/errno';
import { PlatformError } from '@svc/contract/errors';
import type { Logger } from 'pino';
import { HostCallError, type HostCalls } from '../host/host-calls.ts';
import { countErrors } from '../space/disk-limit.ts';
import type { HostSpace } from '../space/host-space.ts';
import { heldImage } from '../space/image-holder.ts';
import { Mutex } from '@svc/contract/async';
import { runTool, ToolFailed } from '../host/run-tool.ts';
import { repairUnmounted } from './volume-image.ts';
import type { StoredFolder } from './volume-records.ts';

const BUSY_RETRY_MS = 20;

export interface VolumeMountOptions {
  readonly hostCalls: HostCalls;
  readonly graceMs: number;
  /** A sandbox that ended may hold the last use of an unmounted image for a moment. */
  readonly busyWaitMs: number;
  readonly logger: Logger;
  readonly space: HostSpace;
}

/**
 * The one mount of a volume, shared by all its users.
 * It comes with the first use, stays for a while after the last one, and survives this process.
 */
export class VolumeMount {
  readonly #places: StoredFolder;
  readonly #hostCalls: HostCalls;
  readonly #graceMs: number;
  readonly #busyWaitMs: number;
  readonly #logger: Logger;
  readonly #space: HostSpace;
  readonly #changes = new Mutex();
  #uses = 0;
  #lastUsedBytes: number | undefined;
  #deviceName = '';
  #graceTimer: NodeJS.Timeout | undefined;

  constructor(places: StoredFolder, options: VolumeMountOptions) {
    this.#places = places;
    this.#hostCalls = options.hostCalls;
    this.#graceMs = options.graceMs;
    this.#busyWaitMs = options.busyWaitMs;
    this.#logger = options.logger;
    this.#space = options.space;
  }

  /** The root of the mounted volume. Every call that succeeds is paired with one of `release`. */
  async acquire(): Promise<string> {
    return await this.#changes.run(async () => {
      clearTimeout(this.#graceTimer);
      this.#watch(await this.#mount());
      this.#uses += 1;
      return this.#places.mountPoint;
    });
  }

  release(): void {
    this.#uses -= 1;
    if (this.#uses > 0) return;
    clearTimeout(this.#graceTimer);
    this.#graceTimer = setTimeout(() => {
      this.unmountUnused().catch((error: unknown) => {
        this.#logger.warn({ err: error, folder: this.#places.folder }, 'a volume could not be unmounted');
      });
    }, this.#graceMs);
    // A mount that is left over does no harm; the next start removes it.
    this.#graceTimer.unref();
  }

  /** Unmounts now, unless someone uses it. Succeeds when it is not mounted. */
  async unmountUnused(): Promise<void> {
    await this.#changes.run(async () => {
      if (this.#uses === 0) await this.#unmount();
    });
  }

  /** Runs `task` while the image cannot be mounted; false without running it when the volume is in use. */
  async whileUnmounted(task: () => Promise<void>): Promise<boolean> {
    return await this.#changes.run(async () => {
      if (this.#uses > 0) return false;
      await this.#unmount();
      await task();
      return true;
    });
  }

  /**
   * Bytes in use, as the file system says or last said. Undefined when this process never had it mounted: then the image
   * itself knows, which for a while after unmounting it does not.
   */
  async usedBytes(): Promise<number | undefined> {
    return (await this.#usedBytesNow()) ?? this.#lastUsedBytes;
  }

  /** Undefined while it is not mounted. */
  async #usedBytesNow(): Promise<number | undefined> {
    if ((await this.device()) === undefined) return undefined;
    try {
      const { blocks, bfree, bsize } = await statfs(this.#places.mountPoint);
      this.#lastUsedBytes = (blocks - bfree) * bsize;
      return this.#lastUsedBytes;
    } catch (error) {
      // It was unmounted in between.
      if (isErrno(error, 'ENOENT')) return undefined;
      throw error;
    }
  }

  /** The kernel has found errors in it since it was mounted: it may be read-only by now, and is repaired when it is next mounted. */
  get hasErrors(): boolean {
    return this.#deviceName !== '' && countErrors(this.#deviceName) > 0;
  }

  async device(): Promise<string | undefined> {
    return await mountedDevice(this.#places.mountPoint);
  }

  async #unmount(): Promise<void> {
    clearTimeout(this.#graceTimer);
    if ((await this.#usedBytesNow()) === undefined) return await this.#removeMountPoint();
    await this.#giveBackSpace();
    this.#space.forget({ kind: 'volume', key: this.#places.folder });
    await this.#removeMountPoint();
    this.#deviceName = '';
  }

  /**
   * Any program of the host may have a mount namespace with a copy of the mount, which would keep the volume for as long as it runs. With the
   * mount point the kernel takes the copies away, whichever namespace they are in.
   */
  async #removeMountPoint(): Promise<void> {
    await this.#hostCalls.removeMountPoint(this.#places.mountPoint, 1);
  }

  /** What files no longer occupy in the volume, the image need not occupy on the host. */
  async #giveBackSpace(): Promise<void> {
    try {
      await runTool('fstrim', [this.#places.mountPoint]);
    } catch (error) {
      // Not every file system of a host can punch holes; the volume works as well without.
      if (!(error instanceof ToolFailed)) throw error;
    }
  }

  /** @returns the device */
  async #mount(): Promise<string> {
    const mounted = await this.device();
    if (mounted !== undefined) return mounted;
    const deadline = Date.now() + this.#busyWaitMs;
    let isRepaired = false;
    for (;;) {
      try {
        await this.#mountImage();
        return (await this.device()) ?? '';
      } catch (error) {
        if (isHostErrno(error, 'EUCLEAN') && !isRepaired) {
          this.#logger.warn(
            { folder: this.#places.folder },
            'a volume needs repair before it can be mounted',
          );
          await repairUnmounted(this.#places.image);
          isRepaired = true;
        } else if (isHostErrno(error, 'EBUSY')) {
          if (Date.now() > deadline) throw await heldImage('volume', this.#places.image, error);
          await sleep(BUSY_RETRY_MS);
        } else {
          throw notMounted(error);
        }
      }
    }
  }

  #watch(path: string): void {
    const { folder, image, mountPoint } = this.#places;
    const device = basename(path);
    this.#deviceName = device;
    this.#space.watch({ kind: 'volume', key: folder, image, mountPoint, device });
  }

  async #mountImage(): Promise<void> {
    const { image, mountPoint } = this.#places;
    await this.#removeMountPoint();
    await mkdir(mountPoint, { mode: 0o700 });
    await this.#hostCalls.mountImage({ image, target: mountPoint, fstype: 'ext4', readonly: false });
  }
}

/** Checked for readers too: a mount needs a folder to be mounted on, which takes an inode of the host. */
function notMounted(cause: unknown): PlatformError {
  const message = isErrno(cause, 'ENOSPC', 'EDQUOT')
    ? 'The volume cannot be mounted: the disk of the host has no room, or no inodes, left; remove sandboxes or images'
    : 'The volume cannot be mounted now; try again';
  return new PlatformError('unavailable', message, { cause });
}

function isHostErrno(error: unknown, errno: string): boolean {
  return error instanceof HostCallError && error.errno === errno;
}

/** The device mounted at a path of ours, undefined when none is. */
async function mountedDevice(mountPoint: string): Promise<string | undefined> {
  // https://man7.org/linux/man-pages/man5/proc_pid_mountinfo.5.html
  for (const line of (await readFile('/proc/self/mountinfo', 'utf8')).split('\n')) {
    const [mount = '', source = ''] = line.split(' - ');
    if (unescape(mount.split(' ')[4] ?? '') === mountPoint) return source.split(' ')[1];
  }
  return undefined;
}

/** The kernel writes blanks and backslashes as three octal digits. */
function unescape(field: string): string {
  return field.replaceAll(/\\([0-7]{3})/g, (_, digits: string) =>
    String.fromCodePoint(Number.parseInt(digits, 8)),
  );
}
