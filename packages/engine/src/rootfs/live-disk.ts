import { mkdir, readdir, rm } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { isErrno } from '@svc/contract/errno';
import { PlatformError } from '@svc/contract/errors';
import { HostCallError, type HostCalls } from '../host/host-calls.ts';
import { devicesByImage } from '../space/disk-limit.ts';

/** The longest freeze, during which writers wait. Copying a gigabyte takes about a second, and almost no time where blocks can be shared. */
const MOST_FROZEN_MS = 30_000;
const BUSY_LOOK_MS = 100;

type Calls = Pick<HostCalls, 'copyFrozen' | 'thaw'>;

export interface LiveCopy {
  /** The longest time the file system may be frozen. */
  readonly mostMs?: number;
  /** How long to wait for another program that has frozen it. */
  readonly busyMs?: number;
}

/**
 * Copies the mounted disks of a data folder, of sandboxes and volumes, while their file systems are frozen. A freeze outlives the process
 * that made it, so each has a mark file in `<data>/frozen`, written before it and removed after it, by which the engine finds the disks it
 * has to thaw. The engine and `svc backup` share these files, which also keep one from ending the freeze of the other.
 */
export class LiveDisks {
  readonly #dataFolder: string;
  readonly #calls: Calls;
  /** Marks of copies in progress in this process. */
  readonly #copying = new Set<string>();
  #recovering: Promise<void> | null = null;

  constructor(dataFolder: string, calls: Calls) {
    this.#dataFolder = dataFolder;
    this.#calls = calls;
  }

  get #folder(): string {
    return join(this.#dataFolder, 'frozen');
  }

  /** Thaws disks that an earlier engine or a killed backup left frozen. Can be repeated at any time. */
  async recover(): Promise<void> {
    this.#recovering ??= this.#thawAll().finally(() => (this.#recovering = null));
    await this.#recovering;
  }

  /** Copies a mounted image to the new file `to`. Returns for how many milliseconds its file system was frozen. */
  async copy(image: string, to: string, options: LiveCopy = {}): Promise<number> {
    const { mostMs = MOST_FROZEN_MS, busyMs = 0 } = options;
    const mark = this.#markOf(image);
    const deadline = performance.now() + busyMs;
    await mkdir(this.#folder, { recursive: true, mode: 0o700 });
    this.#copying.add(mark);
    try {
      for (;;) {
        const device = devicePath(image);
        if (device === undefined) throw new Error(`${relative(this.#dataFolder, image)} is not mounted`);
        try {
          return await this.#calls.copyFrozen({ image, device, mark, to, mostMs });
        } catch (error) {
          // A killed helper has left it frozen, with its mark. A busy disk is frozen by another process.
          if (!isBusy(error)) await this.#thaw(image, mark);
          if (!isBusy(error) || performance.now() >= deadline) throw reasonOf(error, mostMs);
        }
        await delay(BUSY_LOOK_MS);
      }
    } finally {
      this.#copying.delete(mark);
    }
  }

  async #thawAll(): Promise<void> {
    for (const name of await namesIn(this.#folder)) {
      const mark = join(this.#folder, name);
      if (!this.#copying.has(mark)) await this.#thaw(join(this.#dataFolder, decodeURIComponent(name)), mark);
    }
  }

  async #thaw(image: string, mark: string): Promise<void> {
    const device = devicePath(image);
    if (device === undefined) return await rm(mark, { force: true });
    try {
      await this.#calls.thaw({ image, device, mark });
    } catch (error) {
      // The process that froze it is alive and thaws it; if it dies, the next `recover` does.
      if (!isBusy(error)) throw error;
    }
  }

  /** SAFETY: the encoded path has no slash, so the mark lies in our folder. */
  #markOf(image: string): string {
    return join(this.#folder, encodeURIComponent(relative(this.#dataFolder, image)));
  }
}

async function namesIn(folder: string): Promise<readonly string[]> {
  try {
    return await readdir(folder);
  } catch (error) {
    if (isErrno(error, 'ENOENT')) return [];
    throw error;
  }
}

function isBusy(error: unknown): boolean {
  return error instanceof HostCallError && error.errno === 'EBUSY';
}

function devicePath(image: string): string | undefined {
  const device = devicesByImage().get(image);
  return device === undefined ? undefined : `/dev/${device}`;
}

function reasonOf(error: unknown, mostMs: number): unknown {
  if (!(error instanceof HostCallError)) return error;
  if (error.errno === 'ENOSPC') {
    const message = 'The host has no room for a copy of the disk; remove sandboxes, snapshots or images';
    return new PlatformError('insufficient_storage', message, { cause: error });
  }
  if (error.errno === 'EBUSY') {
    const message = 'The disk is being copied by another program, such as a backup; try again later';
    return new PlatformError('unavailable', message, { cause: error });
  }
  if (error.errno === 'ETIMEDOUT') {
    const message = `The disk could not be copied within ${mostMs / 1000} s while the sandbox runs; stop it first`;
    return new PlatformError('unavailable', message, { cause: error });
  }
  return error;
}
