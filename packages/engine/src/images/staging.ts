import { randomBytes } from 'node:crypto';
import { mkdir, readdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';

/** Retries, because programs of a killed engine may still write for a moment. */
const REMOVAL = { recursive: true, force: true, maxRetries: 10, retryDelay: 100 } as const;

export interface StagingFolder extends AsyncDisposable {
  readonly path: string;
}

/** The folder for objects that are being made or removed. Leftovers of a crash have no value: `clear` removes them. */
export class Staging {
  readonly #folder: string;

  constructor(folder: string) {
    this.#folder = folder;
  }

  /** Creates an empty private folder, which is removed with its content when disposed. */
  async create(): Promise<StagingFolder> {
    const path = this.#newPath();
    await mkdir(path, { recursive: true, mode: 0o700 });
    return { path, [Symbol.asyncDispose]: () => rm(path, REMOVAL) };
  }

  /** Renames a folder into staging in one step, then removes it. */
  async discard(path: string): Promise<void> {
    const doomed = this.#newPath();
    await rename(path, doomed);
    await rm(doomed, REMOVAL);
  }

  async clear(): Promise<void> {
    await mkdir(this.#folder, { recursive: true, mode: 0o700 });
    for (const name of await readdir(this.#folder)) {
      await rm(join(this.#folder, name), REMOVAL);
    }
  }

  #newPath(): string {
    // SAFETY: the name is random hex, so the joined path stays inside the folder.
    return join(this.#folder, randomBytes(12).toString('hex'));
  }
}
