import { mkdirSync, renameSync, writeFileSync } from 'node:fs';
import { mkdir, open, readdir, readFile, rm } from 'node:fs/promises';
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

  /**
   * `durable`: on disk before this returns, so that it also survives a loss of power. Otherwise written at once and without
   * waiting for a thread: four short calls into the page cache, which a caller's start would wait milliseconds for.
   */
  async write(record: SandboxRecord, options: { readonly durable: boolean }): Promise<void> {
    const folder = this.folderOf(record.handle);
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    const temporary = join(folder, 'record.json.new');
    // The record holds the token of svc-init's connection: root only.
    writeFileSync(temporary, JSON.stringify(record), { mode: 0o600 });
    if (options.durable) await flush(temporary);
    renameSync(temporary, join(folder, 'record.json'));
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

async function flush(path: string): Promise<void> {
  const file = await open(path, 'r+');
  try {
    await file.datasync();
  } finally {
    await file.close();
  }
}
