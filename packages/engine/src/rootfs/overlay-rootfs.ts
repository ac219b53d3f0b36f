import { chownSync, lstatSync, mkdirSync, renameSync, statfsSync, statSync } from 'node:fs';
import { chmod, mkdir, readdir, rm, rmdir, stat } from 'node:fs/promises';
import { randomBytes } from 'node:crypto';
import { dirname, join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import type { Logger } from 'pino';
import { isErrno } from '@svc/contract/errno';
import { allocatedBytesOf } from '../host/allocated-bytes.ts';
import { HostCallError, type HostCalls } from '../host/host-calls.ts';
import type { Slot } from '../network/network.ts';
import { deviceOf, devicesByImage } from '../space/disk-limit.ts';
import type { HostSpace } from '../space/host-space.ts';
import { heldImage } from '../space/image-holder.ts';
import { copyDisk } from './copy-disk.ts';
import { allocatedBytes, flush, growDisk, removeImage, wholeFile } from './disk-files.ts';
import { DiskTemplates } from './disk-templates.ts';
import type { LiveDisks } from './live-disk.ts';
import { ReadyDisks } from './ready-disks.ts';
import { repairDisk } from './repair-disk.ts';
import type { DiskUsage, NewDisk, Rootfs } from './rootfs.ts';

/** `statfs` type of an overlay; with it `usage` needs no record of mounts. */
const OVERLAY_MAGIC = 0x79_4c_76_30;
const HANDLE = /^[a-z0-9]{8,32}$/;
/** A mount namespace that is being destroyed may hold a just unmounted disk a little longer. */
const RELEASE_TIMEOUT_MS = 10_000;
const RELEASE_POLL_MS = 5;

export interface OverlayRootfsOptions {
  /** The folder of the disks; absolute, created when missing. */
  readonly folder: string;
  /** The folder of the mount points. Guests' root must be able to traverse its parent folders (mode 0711 is enough). */
  readonly mountFolder: string;
  readonly hostCalls: HostCalls;
  readonly liveDisks: LiveDisks;
  /** The size whose template is made at start-up, so that the first sandbox need not wait for it. */
  readonly defaultSizeMib?: number;
  /** The number of disks of that size kept mounted for starts; 0 unless given. */
  readonly readyDisks?: number;
  readonly logger: Pick<Logger, 'warn'>;
  /** When the host is short of space, no disk is made or copied, and mounted ones do not grow. */
  readonly space: HostSpace;
}

/**
 * A disk is a sparse ext4 image, copied from a template, on a loop device; its folder `u` is the upper of an overlay whose lower folders
 * are the image's layers. Soon after `mount` the overlay is the only mount in the tree: it holds the ext4 mount, which holds the loop
 * device, and all are released together. Files have guest ids on disk, so a disk works with any slot.
 */
export class OverlayRootfs implements Rootfs {
  readonly #folders: Readonly<Record<'disks' | 'stages' | 'mounts', string>>;
  readonly #hostCalls: HostCalls;
  readonly #templates: DiskTemplates;
  readonly #live: LiveDisks;
  readonly #defaultSizeMib: number;
  readonly #space: HostSpace;
  readonly #ready: ReadyDisks;
  /** Mount points of disks that were mounted ahead of their root file system. */
  readonly #staged = new Map<string, string>();
  /** The first mounts of disks that an overlay holds, until they are unmounted. */
  readonly #leaving = new Map<string, Leaving>();

  constructor(options: OverlayRootfsOptions) {
    const { folder, mountFolder, hostCalls, liveDisks, space, logger } = options;
    const { defaultSizeMib = 4096, readyDisks = 0 } = options;
    const [disks, stages, mounts] = [
      join(folder, 'disks'),
      join(mountFolder, 'stages'),
      join(mountFolder, 'mounts'),
    ];
    this.#folders = { disks, stages, mounts };
    this.#hostCalls = hostCalls;
    this.#defaultSizeMib = defaultSizeMib;
    this.#space = space;
    this.#templates = new DiskTemplates(join(folder, 'templates'), hostCalls);
    this.#live = liveDisks;
    this.#ready = new ReadyDisks({
      target: readyDisks,
      make: () => this.#makeReady(),
      remove: (name) => this.removeDisk(name),
      logger,
    });
  }

  async recover(keep: readonly string[]): Promise<void> {
    const { disks, stages, mounts } = this.#folders;
    for (const folder of [disks, stages, mounts]) await mkdir(folder, { recursive: true, mode: 0o700 });
    // SAFETY: a sandbox's root, an unprivileged id on the host, traverses these two folders to its own root file system, but cannot list
    // them.
    await chmod(dirname(mounts), 0o711);
    await chmod(mounts, 0o711);
    const kept = new Set(keep);
    for (const name of await readdir(stages)) await this.#release(this.#place('stages', name));
    for (const name of await readdir(mounts)) if (!kept.has(name)) await this.#releaseMount(name);
    this.#watchAgain(await readdir(mounts));
    for (const name of await readdir(disks)) {
      if (!kept.has(name.replace(/\.img$/, ''))) await rm(join(disks, name), { force: true });
    }
    await this.#templates.recover();
    await this.#templates.prepare(this.#defaultSizeMib);
    this.#ready.open();
  }

  async createDisk(
    handle: string,
    sizeMib: number,
    signal: AbortSignal,
    { isMountedNext = false }: NewDisk = {},
  ): Promise<void> {
    const disk = this.#disk(handle);
    checkSize(sizeMib);
    signal.throwIfAborted();
    this.#space.require(0, this.#folders.disks);
    const ready = isMountedNext && sizeMib === this.#defaultSizeMib ? this.#ready.take() : undefined;
    if (ready !== undefined) {
      renameSync(this.#disk(ready), disk);
      this.#staged.delete(ready);
      this.#staged.set(handle, this.#place('stages', ready));
      return;
    }
    await wholeFile(disk, (unfinished) => this.#templates.createDisk(sizeMib, unfinished));
  }

  async saveDisk(handle: string, file: string, signal: AbortSignal): Promise<void> {
    const disk = this.#disk(handle);
    await this.#unstage(handle);
    signal.throwIfAborted();
    this.#space.require(await allocatedBytes(disk), dirname(file));
    await wholeFile(file, async (unfinished) => {
      await copyDisk(disk, unfinished, signal);
      await this.settleCopy(unfinished, signal);
    });
  }

  async copyLiveDisk(handle: string, file: string, signal: AbortSignal): Promise<number> {
    const disk = this.#disk(handle);
    signal.throwIfAborted();
    this.#space.require(await allocatedBytes(disk), dirname(file));
    let frozenMs = 0;
    await wholeFile(file, async (unfinished) => {
      frozenMs = await this.#live.copy(disk, unfinished);
    });
    return frozenMs;
  }

  async settleCopy(file: string, signal: AbortSignal): Promise<void> {
    // Repairs the copy of a disk that was mounted, also by a host that crashed.
    await repairDisk(file, signal);
    await flush(file);
  }

  async restoreDisk(handle: string, file: string, sizeMib: number, signal: AbortSignal): Promise<void> {
    const disk = this.#disk(handle);
    checkSize(sizeMib);
    signal.throwIfAborted();
    this.#space.require(await allocatedBytes(file), this.#folders.disks);
    await wholeFile(disk, async (unfinished) => {
      await this.#templates.createDisk(sizeMib, unfinished);
      const { size: wantedBytes } = await stat(unfinished);
      await rm(unfinished);
      await copyDisk(file, unfinished, signal);
      if ((await stat(unfinished)).size < wantedBytes) await growDisk(unfinished, wantedBytes, signal);
    });
  }

  async mount(handle: string, layers: readonly string[], slot: Slot, signal: AbortSignal): Promise<string> {
    const staged = this.#staged.get(handle);
    const stage = staged ?? this.#place('stages', handle);
    const target = this.#mountPoint(handle);
    mkdirSync(stage, { recursive: true });
    mkdirSync(target, { recursive: true, mode: 0o700 });
    // SAFETY: every user of the host can read the path in the mount table. Only root of the sandbox, which is this user, may traverse it;
    // no other user may read its files or use its world-writable folders.
    chownSync(dirname(target), slot.idBase, slot.idBase);
    // From here on the code below releases it.
    this.#staged.delete(handle);
    try {
      // It may have been unmounted from outside.
      if (staged === undefined || !isMountPoint(staged))
        await this.#mountDisk(this.#disk(handle), stage, signal);
      await this.#hostCalls.mountOverlay({
        target,
        layers,
        upper: join(stage, 'u'),
        work: join(stage, 'w'),
        userPath: slot.userNamespace,
        idBase: slot.idBase,
      });
      this.#watch(handle, deviceOf(stage));
    } catch (error) {
      // Fails, as it should, while a file system is mounted there.
      await rmdir(target)
        .then(() => rmdir(dirname(target)))
        .catch(() => undefined);
      await this.#release(stage);
      throw error;
    }
    this.#leave(handle, stage);
    return target;
  }

  async unmount(handle: string): Promise<void> {
    this.#disk(handle);
    this.#space.forget({ kind: 'sandbox', key: handle });
    await this.#unstage(handle);
    await this.#left(handle);
    const stage = this.#place('stages', handle);
    if (isThere(stage)) await this.#release(stage);
    await this.#releaseMount(handle);
  }

  async removeDisk(handle: string): Promise<void> {
    const disk = this.#disk(handle);
    await this.#unstage(handle);
    await removeImage(`${disk}.new`);
    await removeImage(disk);
  }

  usage(handle: string): DiskUsage | undefined {
    let status;
    try {
      status = statfsSync(this.#mountPoint(handle));
    } catch (error) {
      if (isErrno(error, 'ENOENT')) return undefined;
      throw error;
    }
    if (status.type !== OVERLAY_MAGIC) return undefined;
    return {
      usedBytes: (status.blocks - status.bfree) * status.bsize,
      totalBytes: status.blocks * status.bsize,
    };
  }

  storedBytes(handle: string): number {
    return allocatedBytesOf(statSync(this.#disk(handle), { throwIfNoEntry: false }));
  }

  async close(): Promise<void> {
    await this.#ready.close();
    for (const handle of this.#staged.keys()) await this.#unstage(handle);
    for (const handle of this.#leaving.keys()) await this.#left(handle);
    await this.#templates.close();
  }

  async #makeReady(): Promise<string> {
    const name = `ready${randomBytes(8).toString('hex')}`;
    const signal = AbortSignal.timeout(RELEASE_TIMEOUT_MS);
    const stage = this.#place('stages', name);
    this.#staged.set(name, stage);
    try {
      await this.createDisk(name, this.#defaultSizeMib, signal);
      mkdirSync(stage, { recursive: true });
      await this.#mountDisk(this.#disk(name), stage, signal);
      return name;
    } catch (error) {
      await this.removeDisk(name);
      throw error;
    }
  }

  /** Unmounts a disk that was mounted ahead and is not used. */
  async #unstage(handle: string): Promise<void> {
    const stage = this.#staged.get(handle);
    if (stage === undefined) return;
    await this.#release(stage);
    this.#staged.delete(handle);
  }

  /** Unmounts the first mount in the background, because the overlay holds the disk from here on. */
  #leave(handle: string, stage: string): void {
    const isReleased = this.#release(stage).then(
      () => this.#leaving.delete(handle),
      // Retried before the next operation on the disk.
      () => false,
    );
    this.#leaving.set(handle, { stage, isReleased });
  }

  async #left(handle: string): Promise<void> {
    const leaving = this.#leaving.get(handle);
    if (leaving === undefined || (await leaving.isReleased)) return;
    await this.#release(leaving.stage);
    this.#leaving.delete(handle);
  }

  #watch(handle: string, device: string): void {
    const [image, mountPoint] = [this.#disk(handle), this.#mountPoint(handle)];
    this.#space.watch({ kind: 'sandbox', key: handle, image, mountPoint, device });
  }

  /** Watches disks that an earlier engine has mounted. */
  #watchAgain(handles: readonly string[]): void {
    const devices = handles.length === 0 ? new Map<string, string>() : devicesByImage();
    for (const handle of handles) {
      const device = devices.get(this.#disk(handle));
      if (device !== undefined) this.#watch(handle, device);
    }
  }

  /** Waits while an earlier mount of the same disk exists: two at once would destroy it. */
  async #mountDisk(image: string, stage: string, signal: AbortSignal): Promise<void> {
    const deadline = performance.now() + RELEASE_TIMEOUT_MS;
    let isRepaired = false;
    for (;;) {
      signal.throwIfAborted();
      try {
        await this.#hostCalls.mountImage({
          image,
          target: stage,
          fstype: 'ext4',
          readonly: false,
          isVolatile: true,
        });
        return;
      } catch (error) {
        if (!(error instanceof HostCallError)) throw error;
        if (error.errno === 'EUCLEAN' && !isRepaired) {
          await repairDisk(image, signal);
          isRepaired = true;
        } else if (error.errno !== 'EBUSY') {
          throw error;
        } else if (performance.now() > deadline) {
          throw await heldImage('disk', image, error);
        } else {
          await wait(RELEASE_POLL_MS);
        }
      }
    }
  }

  async #releaseMount(handle: string): Promise<void> {
    await this.#hostCalls.removeMountPoint(this.#mountPoint(handle), 2);
  }

  async #release(stage: string): Promise<void> {
    await this.#hostCalls.removeMountPoint(stage, 1);
  }

  /** The mount point, in a folder of its own whose owner controls access. */
  #mountPoint(handle: string): string {
    return join(this.#place('mounts', handle), 'root');
  }

  #disk(handle: string): string {
    return `${this.#place('disks', handle)}.img`;
  }

  #place(kind: 'disks' | 'stages' | 'mounts', handle: string): string {
    // SAFETY: a matching handle has no slash or dot, so the joined path stays inside our folder.
    if (!HANDLE.test(handle)) throw new Error(`not a disk handle: ${JSON.stringify(handle)}`);
    return join(this.#folders[kind], handle);
  }
}

interface Leaving {
  readonly stage: string;
  readonly isReleased: Promise<boolean>;
}

function isThere(folder: string): boolean {
  return lstatSync(folder, { throwIfNoEntry: false }) !== undefined;
}

function isMountPoint(folder: string): boolean {
  return statSync(folder).dev !== statSync(dirname(folder)).dev;
}

function checkSize(sizeMib: number): void {
  if (!Number.isSafeInteger(sizeMib) || sizeMib < 1) throw new Error(`not a disk size: ${sizeMib} MiB`);
}
