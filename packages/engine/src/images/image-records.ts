import { mkdir, readdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import type { ImageConfig } from '@svc/contract/orchestrator';
import { digestOf, hexOf } from './digest.ts';
import { syncFolder, writeDurably } from './durable-json.ts';
import { coversAudience, scopesAfter, type AccessProof, type Scopes } from './image-access.ts';

/** One name of an image, with the data of the image; an image exists as long as one record does. */
export interface ImageRecord {
  /** Normalised; null keeps an image that lost its last name to a newer one. */
  readonly reference: string | null;
  readonly id: string;
  /** The digest that the registry returns for the reference, maybe of a list of manifests. */
  readonly digest: string | null;
  /** The digest of the manifest for this host. */
  readonly manifestDigest: string | null;
  /** Diff ids, lowest first. */
  readonly layers: readonly string[];
  readonly config: ImageConfig;
  readonly architecture: string;
  readonly sizeBytes: number;
  readonly createdAt: string;
  /** The scopes that may use the image under this name. */
  readonly scopes: Scopes;
}

const FILE = /^[0-9a-f]{64}\.json$/;

/**
 * The records on disk, one file each, named after a hash of the reference (or of the id): no input of a caller becomes a file name. An
 * image exists once its file is written, so nothing needs repair after a crash.
 */
export class ImageRecords {
  readonly #folder: string;
  readonly #records = new Map<string, ImageRecord>();
  /** Serializes `put`: each builds on the result of the one before. */
  #putting: Promise<unknown> = Promise.resolve();

  constructor(folder: string) {
    this.#folder = folder;
  }

  async load(): Promise<void> {
    await mkdir(this.#folder, { recursive: true, mode: 0o700 });
    this.#records.clear();
    for (const name of await readdir(this.#folder)) {
      const path = join(this.#folder, name);
      const record = FILE.test(name) ? await readFile(path, 'utf8').then(parseRecord, () => null) : null;
      // An unreadable record is removed; the image is pulled again on demand.
      if (record === null || fileName(record) !== name) await rm(path, { recursive: true, force: true });
      else this.#records.set(name, record);
    }
  }

  all(): readonly ImageRecord[] {
    return [...this.#records.values()];
  }

  find(reference: string): ImageRecord | undefined {
    return this.#records.get(fileName({ reference, id: '' }));
  }

  /**
   * The layers that need no proof: those of images which all users of the new image may use already. Knowing the hash of a layer is no
   * proof, and neither is a manifest or configuration that names it.
   */
  provenLayers(proof: AccessProof): ReadonlySet<string> {
    const covering = this.all().filter(({ scopes }) => coversAudience(scopes, proof));
    return new Set(covering.flatMap(({ layers }) => layers));
  }

  /** Points the name at the image. Scopes that could use the same image under this name keep access. */
  async put(named: Omit<ImageRecord, 'scopes'>, proof: AccessProof): Promise<ImageRecord> {
    const put = this.#putting.then(() => this.#putNext(named, proof));
    this.#putting = put.catch(() => {});
    return await put;
  }

  async delete(record: ImageRecord): Promise<void> {
    const name = fileName(record);
    this.#records.delete(name);
    await rm(join(this.#folder, name), { force: true });
    await syncFolder(this.#folder);
  }

  /** Revokes a scope's access to the image under all names. */
  async withdraw(id: string, scope: string): Promise<void> {
    const withdrawn = this.#putting.then(async () => {
      for (const record of this.all()) {
        if (record.id !== id || record.scopes?.includes(scope) !== true) continue;
        await this.#write({ ...record, scopes: record.scopes.filter((each) => each !== scope) });
      }
    });
    this.#putting = withdrawn.catch(() => {});
    await withdrawn;
  }

  async #putNext(named: Omit<ImageRecord, 'scopes'>, proof: AccessProof): Promise<ImageRecord> {
    const before = this.#records.get(fileName(named));
    const isSame = before?.id === named.id;
    const record = { ...named, scopes: scopesAfter(isSame ? before.scopes : undefined, proof) };
    // An image that loses its last name may be in use: it stays without a name until it is pruned.
    if (before !== undefined && !isSame && this.#namesOf(before.id) === 1) {
      await this.#write({ ...before, reference: null });
    }
    if (before === undefined || !isDeepStrictEqual(before, record)) await this.#write(record);
    return record;
  }

  #namesOf(id: string): number {
    return this.all().filter((record) => record.id === id).length;
  }

  async #write(record: ImageRecord): Promise<void> {
    const name = fileName(record);
    // SAFETY: the name is a hash in hex, so the joined path stays inside the folder.
    await writeDurably(join(this.#folder, name), record);
    this.#records.set(name, record);
  }
}

function fileName(record: Pick<ImageRecord, 'reference' | 'id'>): string {
  return `${hexOf(digestOf(record.reference ?? record.id))}.json`;
}

function parseRecord(text: string): ImageRecord | null {
  // `#write` is atomic; a file that does not parse was damaged from outside.
  try {
    const record = JSON.parse(text) as ImageRecord;
    if (typeof record.id !== 'string' || !Array.isArray(record.layers)) return null;
    // Older records have no scopes: they are public.
    return { ...record, scopes: record.scopes ?? null };
  } catch {
    return null;
  }
}
