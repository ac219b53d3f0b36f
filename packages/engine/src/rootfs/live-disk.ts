import { mkdir, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { PlatformError } from '@svc/contract/errors';
import { HostCallError, type HostCalls } from '../host/host-calls.ts';
import { devicesByImage } from '../space/disk-limit.ts';

/** Whoever writes waits so long at most. A gigabyte takes about a second, where blocks cannot be shared no time at all. */
const MOST_FROZEN_MS = 30_000;

type Calls = Pick<HostCalls, 'copyFrozen' | 'thaw'>;

/**
 * Copies disks that are mounted, while their file systems stand still. A freeze outlives whoever made it, so each has a file in
 * `folder`, there before it and gone after it, by which the next engine finds what it has to let go on.
 */
export class LiveDisks {
  readonly #folder: string;
  readonly #calls: Calls;

  /** `folder` need not survive a reboot. */
  constructor(folder: string, calls: Calls) {
    this.#folder = folder;
    this.#calls = calls;
  }

  /** Lets go on what an engine before us has left frozen. `imageOf`: the disk of a handle. */
  async recover(imageOf: (handle: string) => string): Promise<void> {
    await mkdir(this.#folder, { recursive: true, mode: 0o700 });
    for (const handle of await readdir(this.#folder)) {
      await this.#thaw(imageOf(handle), this.#mark(handle));
    }
  }

  /** Copies `image` to the new file `to`. Returns for how long its file system stood still. */
  async copy(handle: string, image: string, to: string): Promise<number> {
    const device = devicePath(image);
    if (device === undefined) throw new Error(`the disk ${handle} is not mounted`);
    const mark = this.#mark(handle);
    try {
      return await this.#calls.copyFrozen({ image, device, mark, to, mostMs: MOST_FROZEN_MS });
    } catch (error) {
      // A helper that was killed has left it frozen, and its mark.
      await this.#thaw(image, mark);
      throw reasonOf(error);
    }
  }

  async #thaw(image: string, mark: string): Promise<void> {
    const device = devicePath(image);
    if (device === undefined) await rm(mark, { force: true });
    else await this.#calls.thaw({ image, device, mark });
  }

  #mark(handle: string): string {
    // SAFETY: handles are checked by whoever calls us, or are names of files that we made.
    return join(this.#folder, handle);
  }
}

function devicePath(image: string): string | undefined {
  const device = devicesByImage().get(image);
  return device === undefined ? undefined : `/dev/${device}`;
}

function reasonOf(error: unknown): unknown {
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
    const message = `The disk could not be copied within ${MOST_FROZEN_MS / 1000} s while the sandbox runs; stop it first`;
    return new PlatformError('unavailable', message, { cause: error });
  }
  return error;
}
