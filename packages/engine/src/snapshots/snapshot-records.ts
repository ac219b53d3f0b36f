import { randomBytes } from 'node:crypto';
import { mkdir, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { SnapshotView } from '@svc/contract/orchestrator';
import { readDurably, syncFolder, writeDurably } from '../images/durable-json.ts';

/** A snapshot on disk: one folder with its record and its disk. */
export interface StoredSnapshot {
  readonly view: SnapshotView;
  readonly folder: string;
  readonly disk: string;
}

/**
 * The records of all snapshots: `<folder>/<random name>/snapshot.json`. A folder without a record is incomplete, so
 * writing the record is the last step of making a snapshot and removing it the first step of removing one.
 */
export class SnapshotRecords {
  readonly #folder: string;
  readonly #snapshots = new Map<string, StoredSnapshot>();

  constructor(folder: string) {
    this.#folder = folder;
  }

  /** Reads all records and removes incomplete snapshots. Returns the folders with invalid records, which are kept. */
  async load(): Promise<readonly string[]> {
    await mkdir(this.#folder, { recursive: true, mode: 0o700 });
    const damaged: string[] = [];
    this.#snapshots.clear();
    for (const name of await readdir(this.#folder)) {
      const folder = join(this.#folder, name);
      const view = await readRecord(folder);
      if (view === 'missing') await rm(folder, { recursive: true, force: true });
      else if (view === 'damaged') damaged.push(folder);
      else this.#snapshots.set(view.id, { view, folder, disk: diskIn(folder) });
    }
    return damaged;
  }

  get(id: string): StoredSnapshot | undefined {
    return this.#snapshots.get(id);
  }

  list(): readonly StoredSnapshot[] {
    return [...this.#snapshots.values()];
  }

  /** A new folder for a snapshot that is about to be made. */
  async prepare(): Promise<{ readonly folder: string; readonly disk: string }> {
    // SAFETY: the name is random and ours; ids from callers are only stored in the record, never used as paths.
    const folder = join(this.#folder, randomBytes(12).toString('hex'));
    await mkdir(folder, { recursive: true, mode: 0o700 });
    return { folder, disk: diskIn(folder) };
  }

  /** The snapshot exists from here on. */
  async save(stored: StoredSnapshot): Promise<void> {
    await writeDurably(join(stored.folder, RECORD), stored.view);
    await syncFolder(this.#folder);
    this.#snapshots.set(stored.view.id, stored);
  }

  /** The snapshot does not exist from here on; its folder still does. */
  async forget(stored: StoredSnapshot): Promise<void> {
    await rm(join(stored.folder, RECORD), { force: true });
    await syncFolder(stored.folder);
    this.#snapshots.delete(stored.view.id);
  }
}

const RECORD = 'snapshot.json';

function diskIn(folder: string): string {
  return join(folder, 'disk.img');
}

async function readRecord(folder: string): Promise<SnapshotView | 'missing' | 'damaged'> {
  return await readDurably(
    join(folder, RECORD),
    async () => (await import('./parse-snapshot.ts')).parseSnapshot,
  );
}
