import { randomBytes } from 'node:crypto';
import { mkdir, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Volume } from '@svc/contract/orchestrator';
import { readDurably, syncFolder, writeDurably } from '../images/durable-json.ts';

/** A volume on disk: a folder with its record, its image and its mount point. */
export interface StoredVolume {
  readonly volume: Volume;
  readonly folder: string;
  readonly image: string;
  readonly mountPoint: string;
  /** The folder with a note for every write in progress. */
  readonly notes: string;
}

/**
 * The records of all volumes: `<folder>/<random name>/volume.json`. A folder without a record is half made or half removed: writing the
 * record is the last step of a create, and deleting it the first step of a removal.
 */
export class VolumeRecords {
  readonly #folder: string;
  readonly #volumes = new Map<string, StoredVolume>();

  constructor(folder: string) {
    this.#folder = folder;
  }

  /** Reads all records. `halfMade` are folders without one; `damaged` have an unreadable one: leave them alone. */
  async load(): Promise<{ readonly halfMade: readonly StoredFolder[]; readonly damaged: readonly string[] }> {
    await mkdir(this.#folder, { recursive: true, mode: 0o700 });
    const halfMade: StoredFolder[] = [];
    const damaged: string[] = [];
    this.#volumes.clear();
    for (const name of await readdir(this.#folder)) {
      const places = placesIn(join(this.#folder, name));
      const record = await readRecord(places.folder);
      if (record === 'missing') halfMade.push(places);
      else if (record === 'damaged') damaged.push(places.folder);
      else this.#volumes.set(record.id, { ...places, volume: record });
    }
    return { halfMade, damaged };
  }

  get(id: string): StoredVolume | undefined {
    return this.#volumes.get(id);
  }

  list(): readonly StoredVolume[] {
    return [...this.#volumes.values()];
  }

  /** Creates a folder for a new volume. */
  async prepare(): Promise<StoredFolder> {
    // SAFETY: the name is random and ours; ids from callers are only stored in files.
    const places = placesIn(join(this.#folder, `volume-${randomBytes(12).toString('hex')}`));
    await mkdir(places.folder, { recursive: true, mode: 0o700 });
    await mkdir(places.notes, { mode: 0o700 });
    return places;
  }

  /** Writes the record; the volume exists from here on. */
  async save(places: StoredFolder, volume: Volume): Promise<StoredVolume> {
    await writeDurably(join(places.folder, RECORD), volume);
    const stored = { ...places, volume };
    this.#volumes.set(volume.id, stored);
    return stored;
  }

  /** Deletes the record; the volume no longer exists, only its folder. */
  async forget(stored: StoredVolume): Promise<void> {
    await rm(join(stored.folder, RECORD), { force: true });
    await syncFolder(stored.folder);
    this.#volumes.delete(stored.volume.id);
  }
}

export type StoredFolder = Omit<StoredVolume, 'volume'>;

const RECORD = 'volume.json';

function placesIn(folder: string): StoredFolder {
  return {
    folder,
    image: join(folder, 'image.ext4'),
    mountPoint: join(folder, 'mount'),
    notes: join(folder, 'writing'),
  };
}

async function readRecord(folder: string): Promise<Volume | 'missing' | 'damaged'> {
  return await readDurably(join(folder, RECORD), async () => (await import('./parse-volume.ts')).parseVolume);
}
