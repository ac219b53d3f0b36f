import { mkdir, open, readdir, readFile, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { SandboxRecord } from './record.ts';

const HANDLE = /^[a-f0-9]{16}$/;

/**
 * The records on disk, one folder per handle.
 * A record is replaced whole (write, rename), so a reader never sees half of one.
 */
export class RecordFiles {
  readonly #folder: string;

  constructor(folder: string) {
    this.#folder = folder;
  }

  /** SAFETY: handles are 16 hex digits made by `newHandle`, so the joined path stays inside the folder. */
  folderOf(handle: string): string {
    if (!HANDLE.test(handle)) throw new Error(`not a handle: ${handle}`);
    return join(this.#folder, handle);
  }

  /** `durable`: on disk before this returns, so that it also survives a loss of power. */
  async write(record: SandboxRecord, options: { readonly durable: boolean }): Promise<void> {
    const folder = this.folderOf(record.handle);
    await mkdir(folder, { recursive: true, mode: 0o700 });
    const temporary = join(folder, 'record.json.new');
    // The record holds the token of svc-init's connection: root only.
    const file = await open(temporary, 'w', 0o600);
    try {
      await file.writeFile(JSON.stringify(record));
      if (options.durable) await file.datasync();
    } finally {
      await file.close();
    }
    await rename(temporary, join(folder, 'record.json'));
  }

  /** All records; folders without a readable one are handed to `onBroken`. */
  async readAll(onBroken: (handle: string, error: unknown) => void): Promise<SandboxRecord[]> {
    await mkdir(this.#folder, { recursive: true, mode: 0o700 });
    const records: SandboxRecord[] = [];
    for (const handle of await readdir(this.#folder)) {
      if (!HANDLE.test(handle)) continue;
      try {
        const text = await readFile(join(this.#folder, handle, 'record.json'), 'utf8');
        // Written by this program; a torn file does not parse and is reported as broken.
        records.push(JSON.parse(text) as SandboxRecord);
      } catch (error) {
        onBroken(handle, error);
      }
    }
    return records;
  }

  async remove(handle: string): Promise<void> {
    await rm(this.folderOf(handle), { recursive: true, force: true });
  }
}
