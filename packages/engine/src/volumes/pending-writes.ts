import { randomBytes } from 'node:crypto';
import { open, readdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { FileFailed } from '@svc/contract/channel';
import type { ChannelFiles } from '@svc/contract/channel';
import { isErrno } from '@svc/contract/errno';
import { hostIsFull } from '../space/host-is-full.ts';

/**
 * Which temporary files are in a volume, noted outside of it before they are made: after a crash exactly those are removed,
 * without a search and without guessing by name.
 */
export class PendingWrites {
  readonly #folder: string;
  readonly #active = new Set<string>();

  constructor(folder: string) {
    this.#folder = folder;
  }

  /** A name for a temporary file in `parent`, and the note of it. */
  async begin(parent: string): Promise<{ readonly temporary: string; readonly note: string }> {
    const note = randomBytes(16).toString('hex');
    const temporary = `${parent === '/' ? '' : parent}/.svc-tmp-${note}`;
    this.#active.add(note);
    try {
      // SAFETY: the name of the note is random and ours; the path in the volume is only content.
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

  /** The temporary file is gone: renamed or removed. */
  async end(note: string): Promise<void> {
    await rm(join(this.#folder, note), { force: true });
    this.#active.delete(note);
  }

  /** The temporary file may be there still; whoever comes next removes it. */
  giveUp(note: string): void {
    this.#active.delete(note);
  }

  /** Removes what earlier writes left behind. */
  async cleanUp(files: ChannelFiles): Promise<void> {
    for (const note of await readdir(this.#folder)) {
      if (this.#active.has(note)) continue;
      const temporary = await readFile(join(this.#folder, note), 'utf8');
      // Empty when the note was being written; then there is no file yet.
      if (temporary !== '') await removeAnything(files, temporary);
      await this.end(note);
    }
  }
}

/** Removes a file, or a folder with all that is in it; succeeds when there is nothing. */
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
