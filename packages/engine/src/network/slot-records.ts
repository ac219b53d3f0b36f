import { mkdirSync, writeFileSync } from 'node:fs';
import { mkdir, readFile, readdir, statfs } from 'node:fs/promises';
import { join } from 'node:path';
import { removeTree } from '../host/run-files.ts';
import type { Slot } from './network.ts';

export interface SlotRecord {
  readonly index: number;
  readonly slot: Slot;
}

const SLOT_KEY = /^[a-z0-9]{12}$/;
const NSFS_MAGIC = 0x6e736673;

/** The slots of an engine as files: a folder per slot with two namespace pins and a record that survives the engine. */
export class SlotRecords {
  readonly #folder: string;

  constructor(runFolder: string) {
    this.#folder = join(runFolder, 'slots');
  }

  userPath(key: string): string {
    return join(this.#path(key), 'user');
  }

  networkPath(key: string): string {
    return join(this.#path(key), 'net');
  }

  /** Call it before the slot is made, so that leftovers of a crash can be found. */
  write(record: SlotRecord): void {
    const path = this.#path(record.slot.key);
    mkdirSync(path, { recursive: true, mode: 0o700 });
    writeFileSync(join(path, 'slot.json'), JSON.stringify(record), { mode: 0o600 });
  }

  remove(key: string): void {
    removeTree(this.#path(key));
  }

  async keys(): Promise<readonly string[]> {
    await mkdir(this.#folder, { recursive: true, mode: 0o700 });
    return (await readdir(this.#folder)).filter((name) => SLOT_KEY.test(name));
  }

  /** Null when there is none, or it is truncated: then the slot was never handed out. */
  async read(key: string): Promise<SlotRecord | null> {
    try {
      // Only `write` above creates this file, in a folder that only root can enter.
      return JSON.parse(await readFile(join(this.#path(key), 'slot.json'), 'utf8')) as SlotRecord;
    } catch {
      return null;
    }
  }

  /** Whether both namespaces still exist; after a reboot the files can be there without them. */
  async isPinned(key: string): Promise<boolean> {
    const pins = await Promise.all([this.userPath(key), this.networkPath(key)].map(isNamespace));
    return pins.every(Boolean);
  }

  #path(key: string): string {
    // SAFETY: a key is 12 letters and digits, so the path stays inside the folder.
    if (!SLOT_KEY.test(key)) throw new Error('Not the key of a network slot');
    return join(this.#folder, key);
  }
}

async function isNamespace(path: string): Promise<boolean> {
  try {
    return (await statfs(path)).type === NSFS_MAGIC;
  } catch {
    return false;
  }
}
