import { appendFileSync, mkdirSync, renameSync, writeFileSync } from 'node:fs';
import { mkdir, open, readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { isErrno } from '@svc/contract/errno';
import { removeFile, removeTree } from '../host/run-files.ts';
import { hostIsFull } from '../space/host-is-full.ts';
import type { EngineRecord } from './record.ts';

const HANDLE = /^[a-f0-9]{16}$/;

const REPLACE_MS = 1_000;

/**
 * The records on disk, one folder per handle. Each is a line of JSON, and the last whole line of its file counts.
 * The file is replaced whole (write, rename), or a line is appended; a reader never sees half of a record.
 */
export class RecordFiles {
  readonly #folder: string;
  readonly #replaceMs: number;
  /** Files with more than one line, and the timers that will rewrite them. */
  readonly #appended = new Map<string, NodeJS.Timeout>();

  constructor(folder: string, options: { readonly replaceMs?: number } = {}) {
    this.#folder = folder;
    this.#replaceMs = options.replaceMs ?? REPLACE_MS;
  }

  /** SAFETY: handles are 16 hex digits made by `newHandle`, so the joined path stays inside the folder. */
  folderOf(handle: string): string {
    if (!HANDLE.test(handle)) throw new Error(`not a handle: ${handle}`);
    return join(this.#folder, handle);
  }

  /**
   * `durable`: on disk before this returns, so that it also survives a power loss. Otherwise written synchronously into the page cache by
   * four short calls; a thread would add milliseconds to a start.
   */
  async write(record: EngineRecord, options: { readonly durable: boolean }): Promise<void> {
    const folder = this.folderOf(record.handle);
    this.#forgetAppended(record.handle);
    const temporary = join(folder, 'record.json.new');
    sayDiskFull(() => {
      mkdirSync(folder, { recursive: true, mode: 0o700 });
      // The record holds the token of svc-init's connection: root only.
      writeFileSync(temporary, JSON.stringify(record), { mode: 0o600 });
    });
    if (options.durable) await flush(temporary);
    renameSync(temporary, join(folder, 'record.json'));
    // Flushes the directory entries of the file and of its folder.
    if (options.durable) await Promise.all([flush(folder), flush(this.#folder)]);
  }

  /**
   * As `write` without `durable`, for an existing record and a caller who waits. The kernel flushes a replaced file at once, which takes up
   * to ten times as long as appending a line. The file is replaced a little later, so that the appended line does not stay in the page
   * cache for half a minute.
   */
  append(record: EngineRecord, onFailure: (error: unknown) => void): void {
    const path = join(this.folderOf(record.handle), 'record.json');
    sayDiskFull(() => appendFileSync(path, `\n${JSON.stringify(record)}\n`, { mode: 0o600 }));
    this.#forgetAppended(record.handle);
    const replace = () => {
      this.write(record, { durable: false }).catch(onFailure);
    };
    this.#appended.set(record.handle, setTimeout(replace, this.#replaceMs).unref());
  }

  /** Reads all records. Folders without a readable one are passed to `onBroken`, with `ENOENT` when none was ever written. */
  async readAll(onBroken: (handle: string, error: unknown) => void): Promise<EngineRecord[]> {
    await mkdir(this.#folder, { recursive: true, mode: 0o700 });
    const records: EngineRecord[] = [];
    for (const handle of await readdir(this.#folder)) {
      if (!HANDLE.test(handle)) continue;
      try {
        const text = await readFile(join(this.#folder, handle, 'record.json'), 'utf8');
        // Records of older engines lack `hostFolder`.
        const record = lastRecord(text);
        records.push({ ...record, hostFolder: record.hostFolder ?? null });
      } catch (error) {
        onBroken(handle, error);
      }
    }
    return records;
  }

  /**
   * Synchronous, like writes: a few files, of which only logs are larger than a block. The record goes first: that needs no descriptor, so
   * it succeeds also when no more files may be opened, and recovery removes a folder without a record.
   */
  remove(handle: string): void {
    this.#forgetAppended(handle);
    const folder = this.folderOf(handle);
    // A folder that was never made is ENOENT as well.
    removeFile(join(folder, 'record.json'));
    removeTree(folder);
  }

  #forgetAppended(handle: string): void {
    clearTimeout(this.#appended.get(handle));
    this.#appended.delete(handle);
  }
}

function sayDiskFull(write: () => void): void {
  try {
    write();
  } catch (cause) {
    throw isErrno(cause, 'ENOSPC', 'EDQUOT') ? hostIsFull(cause) : cause;
  }
}

/** @throws when no line is whole */
function lastRecord(text: string): EngineRecord {
  const lines = text.split('\n').filter((line) => line !== '');
  for (const line of lines.slice(1).toReversed()) {
    try {
      return JSON.parse(line) as EngineRecord;
    } catch {
      // The engine was killed during the append: the caller got no answer, and the previous line counts.
    }
  }
  // Written by this program: only a truncated line does not parse.
  return JSON.parse(lines[0] ?? '') as EngineRecord;
}

async function flush(path: string): Promise<void> {
  const file = await open(path, 'r');
  try {
    await file.sync();
  } finally {
    await file.close();
  }
}
