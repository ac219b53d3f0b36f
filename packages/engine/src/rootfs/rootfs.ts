import type { Slot } from '../network/network.ts';

export interface DiskUsage {
  readonly usedBytes: number;
  readonly totalBytes: number;
}

export interface NewDisk {
  /** Its sandbox is started at once, and somebody waits for that. */
  readonly isMountedNext?: boolean;
}

/**
 * The root file system of a sandbox: the image's layers, read-only and shared, under a writable disk of its own.
 * A handle is made by the engine and safe as a file name.
 * - `createDisk` makes an empty disk that takes `sizeMib` of files and hardly more; a full disk is ENOSPC inside and leaves the host unharmed.
 *   With `isMountedNext` it may be one that is mounted already.
 * - `mount` shows the layers under the disk, owned as the slot's user namespace sees them, and returns the path.
 *   What was written is there again after `unmount` and `mount`, also with another slot. A crash of the host may cost what was
 *   written in the half minute before it, fsync or not: what must outlive that belongs in a volume.
 * - `saveDisk` copies a disk that is not mounted to the new file `file`, on the host's disk when it returns. `restoreDisk` makes a disk
 *   of such a file, as large as asked for or as it was, whichever is more; the two have nothing in common from then on. Either
 *   leaves no file when it fails; without room it is `insufficient_storage`.
 * - `copyLiveDisk` does the same with a disk that is mounted: all that was written is in it, whoever writes meanwhile waits, half a minute
 *   at most (`unavailable`). Whatever happens, also to this process, they go on. The copy is as a crash of the host would leave it
 *   until `settleCopy` has put it in order and on the host's disk.
 * - `unmount` and `removeDisk` succeed when there is nothing (left) to do, so cleanup can be repeated.
 * - `recover` runs once at start-up, before anything else: mounts and disks of handles not in `keep` are removed, those in `keep`
 *   stay as they are, mounted or not.
 * - `mount` and `saveDisk` wait for a disk that its last run has not let go of; after ten seconds it is `unavailable`.
 * - Calls for one handle never overlap; calls for different handles may.
 */
export interface Rootfs {
  recover(keep: readonly string[]): Promise<void>;
  createDisk(handle: string, sizeMib: number, signal: AbortSignal, disk?: NewDisk): Promise<void>;
  saveDisk(handle: string, file: string, signal: AbortSignal): Promise<void>;
  /** Returns for how many milliseconds the disk stood still. */
  copyLiveDisk(handle: string, file: string, signal: AbortSignal): Promise<number>;
  settleCopy(file: string, signal: AbortSignal): Promise<void>;
  restoreDisk(handle: string, file: string, sizeMib: number, signal: AbortSignal): Promise<void>;
  /** `layers`: absolute folders, lowest first. */
  mount(handle: string, layers: readonly string[], slot: Slot, signal: AbortSignal): Promise<string>;
  unmount(handle: string): Promise<void>;
  removeDisk(handle: string): Promise<void>;
  /** What the disk takes on the host's disk at this moment; 0 when there is none. */
  storedBytes(handle: string): number;
  /** Undefined while not mounted. */
  usage(handle: string): DiskUsage | undefined;
  close(): Promise<void>;
}
