import { randomBytes } from 'node:crypto';
import { open, readdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { FileFailed } from '@svc/contract/channel';
import type { ChannelFiles } from '@svc/contract/channel';
import { isErrno } from '@svc/contract/errno';
import { hostIsFull } from '../space/host-is-full.ts';

/**
 * A journal of the temporary files in a volume, stored outside of it and written before they are made: after a crash exactly those are
 * removed, without a search and without guessing by name.
 */
export class PendingWrites {
  readonly #folder: string;
  readonly #active = new Set<string>();

  constructor(folder: string) {
    this.#folder = folder;
  }

  /** Chooses a name for a temporary file in `parent` and records it. */
  async begin(parent: string): Promise<{ readonly temporary: string; readonly note: string }> {
    const note = randomBytes(16).toString('hex');
    const temporary = `${parent === '/' ? '' : parent}/.svc-tmp-${note}`;
    this.#active.add(note);
    try {
      // SAFETY: the name of the note is random and ours; the path in the volume is only its content.
      const file = await open(join(this.#folder, note), 'wx', 0o600);
      try {
        await file.writeFile(temporary);
        await file.sync();
      } finally {
        await file.close();
      }
      return { temporary, note };
    } catch (error) {
      this.#active.delete(note);
      if (isErrno(error, 'ENOSPC', 'EDQUOT')) throw hostIsFull(error);
      throw error;
    }
  }

  /** Removes the note of a temporary file that was renamed or removed. */
  async end(note: string): Promise<void> {
    await rm(join(this.#folder, note), { force: true });
    this.#active.delete(note);
  }

  /** Leaves a temporary file that may still exist to the next `cleanUp`. */
  giveUp(note: string): void {
    this.#active.delete(note);
  }

  /** Removes the temporary files of earlier writes. */
  async cleanUp(files: ChannelFiles): Promise<void> {
    for (const note of await readdir(this.#folder)) {
      if (this.#active.has(note)) continue;
      const temporary = await readFile(join(this.#folder, note), 'utf8');
      // Empty after a crash during the write of the note; then there is no file yet.
      if (temporary !== '') await removeAnything(files, temporary);
      await this.end(note);
    }
  }
}

/** Removes a file, or a folder with its content; succeeds when it does not exist. */
export async function removeAnything(files: ChannelFiles, path: string): Promise<void> {
  try {
    await files.remove(path);
  } catch (error) {
    if (!(error instanceof FileFailed)) throw error;
    if (error.errnoName === 'ENOENT' || error.errnoName === 'ENOTDIR') return;
    if (error.errnoName !== 'EISDIR') throw error;
    await files.removeDir(path, { recursive: true });
  }
}
