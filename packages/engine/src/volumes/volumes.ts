import type { Volume, VolumeEntry, VolumeUsage } from '@svc/contract/orchestrator';

/**
 * Persistent folders with an enforced capacity, which sandboxes mount and callers edit directly.
 * - `create` with an id that exists and the same capacity returns it; with another capacity it is `name_already_exists`.
 * - A write beyond the capacity is ENOSPC for the guest and `disk_full` for the caller; the host is not affected.
 * - `attach` returns a path to mount for the holder and keeps the volume from being removed until `detach`; both can be repeated.
 * - `remove` of an attached volume is `volume_in_use`; of a missing one it succeeds.
 * - Data survives the death of this process and of the host.
 */
export interface Volumes {
  /** The first call. `holders`: for each volume id, the holders that had it when the last engine ended and still do. */
  recover(holders: ReadonlyMap<string, readonly string[]>): Promise<void>;
  create(id: string, capacityMib: number, signal: AbortSignal): Promise<Volume>;
  /**
   * Shrinking below the used size is `invalid_request`. While the volume is held, shrinking is `volume_in_use`; growing works, except on
   * hosts that do not allow the engine to grow a mounted file system, where it is `volume_in_use` too.
   */
  resize(id: string, capacityMib: number, signal: AbortSignal): Promise<Volume>;
  get(id: string): Promise<Volume | undefined>;
  list(): Promise<readonly Volume[]>;
  usage(id: string): Promise<VolumeUsage>;
  /** The current size of the volume on the host's disk; 0 when it does not exist. */
  storedBytes(id: string): Promise<number>;
  remove(id: string): Promise<void>;
  attach(id: string, holder: string, signal: AbortSignal): Promise<string>;
  detach(id: string, holder: string): Promise<void>;
  files(id: string): VolumeFiles;
  close(): Promise<void>;
}

/**
 * Files of one volume. Paths are relative to the volume, UTF-8; absolute paths, `..`, NUL, empty parts and over-long names are
 * `invalid_volume_path`; a missing file is `volume_file_not_found`. A symlink never leads outside, also when a sandbox changes it
 * meanwhile.
 * - `write` is atomic: readers see the old or the new file, whole; an interrupted write leaves the old one.
 */
export interface VolumeFiles {
  read(path: string, signal: AbortSignal): Promise<AsyncIterable<Uint8Array>>;
  write(path: string, content: AsyncIterable<Uint8Array>, signal: AbortSignal): Promise<void>;
  list(path: string, signal: AbortSignal): Promise<readonly VolumeEntry[]>;
  stat(path: string, signal: AbortSignal): Promise<VolumeEntry>;
  mkdir(path: string, signal: AbortSignal): Promise<void>;
  copy(from: string, to: string, signal: AbortSignal): Promise<void>;
  rename(from: string, to: string, signal: AbortSignal): Promise<void>;
  remove(path: string, options: { readonly recursive: boolean }, signal: AbortSignal): Promise<void>;
}
