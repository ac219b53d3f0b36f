import { appendFileSync, mkdirSync, renameSync, writeFileSync } from 'node:fs';
import { mkdir, open, readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { isErrno } from '@svc/contract/errno';
import { removeTree } from '../host/run-files.ts';
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
  /** Files with more than one line, which are about to be replaced. */
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
   * `durable`: on disk before this returns, so that it also survives a loss of power. Otherwise written at once and without
   * waiting for a thread: four short calls into the page cache, which a caller's start would wait milliseconds for.
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
    // Its name, and that of its folder.
    if (options.durable) await Promise.all([flush(folder), flush(this.#folder)]);
  }

  /**
   * As `write` without `durable`, for a record that is there and a caller who waits. A file that is replaced goes to disk at once, which
   * takes the kernel up to ten times as long as another line; so that the line does not wait there for half a minute, the file is
   * replaced a little later.
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

  /** All records; folders without a readable one are handed to `onBroken`, with `ENOENT` when none was ever written. */
  async readAll(onBroken: (handle: string, error: unknown) => void): Promise<EngineRecord[]> {
    await mkdir(this.#folder, { recursive: true, mode: 0o700 });
    const records: EngineRecord[] = [];
    for (const handle of await readdir(this.#folder)) {
      if (!HANDLE.test(handle)) continue;
      try {
        const text = await readFile(join(this.#folder, handle, 'record.json'), 'utf8');
        // Records of an engine that knew no such folders have none.
        const record = lastRecord(text);
        records.push({ ...record, hostFolder: record.hostFolder ?? null });
      } catch (error) {
        onBroken(handle, error);
      }
    }
    return records;
  }

  /** At once, as it is written: a few files, of which only logs are larger than a block. */
  remove(handle: string): void {
    this.#forgetAppended(handle);
    removeTree(this.folderOf(handle));
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
      // The engine was killed while it was appended: nobody has been told of it, and the line before counts.
    }
  }
  // Written by this program: only what was cut off does not parse.
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
