import { mkdir, readdir, readFile, rename, rm, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { KeyedMutex } from '@svc/contract/async';
import { PlatformError } from '@svc/contract/errors';
import { digestOf, hexOf, isDigest } from './digest.ts';
import { syncFolder, writeDurably } from './durable-json.ts';

/** A reference of a scope to an image, and when the scope last used it. */
export interface ImageHold {
  readonly scope: string;
  readonly imageId: string;
  /** Diff ids. */
  readonly layers: readonly string[];
  readonly usedAt: string;
}

/** The scope of callers that name none: the operator. Its images are open to all scopes and count towards the storage of none. */
export const OPERATOR = '';

/** A use is stored when the stored one is older than this, so that most creates do not wait for the disk. */
const NOTE_MS = 60 * 60_000;
const GIB = 2 ** 30;
const FILE = /^[0-9a-f]{64}\.json$/;

/** The storage limit of a scope. */
export interface HoldRoom {
  /** Of all images that it holds, each layer counted once. */
  readonly maximumBytes: number;
  readonly takenBytes: number;
}

/**
 * Stores which scope holds which image, one file each, and answers how much storage the images of a scope take and which images have
 * been unused for long. A hold is written before its image, so every image counts towards the storage of a scope.
 */
export class ImageHolds {
  readonly #folder: string;
  readonly #bytesOf: (diffId: string) => number;
  /** Per file: concurrent writers would replace each other's temporary file. */
  readonly #mutex = new KeyedMutex();
  readonly #holds = new Map<string, ImageHold>();

  constructor(folder: string, bytesOf: (diffId: string) => number) {
    this.#folder = folder;
    this.#bytesOf = bytesOf;
  }

  /** `first`: the holds to write when there is no folder yet. */
  async load(first: () => readonly ImageHold[]): Promise<void> {
    const isThere = await stat(this.#folder).then(
      () => true,
      () => false,
    );
    if (!isThere) await this.#begin(first());
    this.#holds.clear();
    for (const name of await readdir(this.#folder)) {
      const path = join(this.#folder, name);
      const hold = FILE.test(name) ? await readFile(path, 'utf8').then(parseHold, () => null) : null;
      if (hold === null || fileName(hold) !== name) await rm(path, { recursive: true, force: true });
      else this.#holds.set(name, hold);
    }
  }

  ofScope(scope: string): readonly ImageHold[] {
    return this.#holds
      .values()
      .filter((hold) => hold.scope === scope)
      .toArray();
  }

  ofImage(imageId: string): readonly ImageHold[] {
    return this.#holds
      .values()
      .filter((hold) => hold.imageId === imageId)
      .toArray();
  }

  all(): readonly ImageHold[] {
    return [...this.#holds.values()];
  }

  isHeldBy(imageId: string, scope: string): boolean {
    return this.#holds.has(fileName({ scope, imageId }));
  }

  /** Whether the layer counts already, so that another image with it costs the scope nothing. */
  countsFor(scope: string, diffId: string): boolean {
    return [scope, OPERATOR].some((each) => this.ofScope(each).some(({ layers }) => layers.includes(diffId)));
  }

  /** The storage of a scope's images, each layer once, without the layers that the operator holds. */
  storedBytes(scope: string, added: readonly string[] = []): number {
    const layers = new Set([...this.ofScope(scope).flatMap((hold) => hold.layers), ...added]);
    for (const hold of this.ofScope(OPERATOR)) for (const diffId of hold.layers) layers.delete(diffId);
    let bytes = 0;
    for (const diffId of layers) bytes += this.#bytesOf(diffId);
    return bytes;
  }

  /**
   * Notes a use, and counts the image for its scope from now on. An image of the operator needs no further hold.
   * @returns whether the scope did not hold it before @throws PlatformError `quota_exceeded`
   */
  async take(
    scope: string,
    image: { readonly id: string; readonly layers: readonly string[] },
    maximumBytes: number | null,
  ): Promise<boolean> {
    const known = this.#holds.get(fileName({ scope, imageId: image.id }));
    if (known === undefined && this.isHeldBy(image.id, OPERATOR)) return false;
    const now = new Date();
    const hold = { scope, imageId: image.id, layers: image.layers, usedAt: now.toISOString() };
    if (known !== undefined) {
      if (now.getTime() - Date.parse(known.usedAt) >= NOTE_MS) await this.#write(hold);
      return false;
    }
    const takenBytes = this.storedBytes(scope, image.layers);
    if (maximumBytes !== null && takenBytes > maximumBytes) throw overHoldLimit({ maximumBytes, takenBytes });
    // Before the first await, so that concurrent calls count it too.
    this.#holds.set(fileName(hold), hold);
    try {
      await this.#write(hold);
    } catch (error) {
      this.#holds.delete(fileName(hold));
      throw error;
    }
    return true;
  }

  /** Notes that a sandbox has used the image until now. */
  async refresh(imageId: string, olderThanMs: number): Promise<void> {
    const now = Date.now();
    for (const hold of this.ofImage(imageId)) {
      if (now - Date.parse(hold.usedAt) >= olderThanMs)
        await this.#write({ ...hold, usedAt: new Date(now).toISOString() });
    }
  }

  async drop(scope: string, imageId: string): Promise<void> {
    const name = fileName({ scope, imageId });
    if (!this.#holds.delete(name)) return;
    await this.#mutex.run(name, () => rm(join(this.#folder, name), { force: true }));
    await syncFolder(this.#folder);
  }

  async dropImage(imageId: string): Promise<void> {
    for (const { scope } of this.ofImage(imageId)) await this.drop(scope, imageId);
  }

  /** Writes all of them or none: images without a hold would be collected. */
  async #begin(holds: readonly ImageHold[]): Promise<void> {
    const made = `${this.#folder}.new`;
    await rm(made, { recursive: true, force: true });
    await mkdir(made, { recursive: true, mode: 0o700 });
    for (const hold of holds) await writeDurably(join(made, fileName(hold)), hold);
    await rename(made, this.#folder);
    await syncFolder(dirname(this.#folder));
  }

  async #write(hold: ImageHold): Promise<void> {
    const name = fileName(hold);
    this.#holds.set(name, hold);
    // SAFETY: the name is a hash in hex, so the joined path stays inside the folder.
    await this.#mutex.run(name, () => writeDurably(join(this.#folder, name), hold));
  }
}

export function overHoldLimit({ takenBytes, maximumBytes }: HoldRoom): PlatformError {
  const value = round(takenBytes / GIB);
  const maximum = round(maximumBytes / GIB);
  return new PlatformError(
    'quota_exceeded',
    `The images take all the storage that they may have; remove one first (max_image_storage_gib is ${maximum}, this makes it ${value} or more)`,
    { details: { limit: 'max_image_storage_gib', value, maximum } },
  );
}

function round(value: number): number {
  return Math.round(value * 1e6) / 1e6;
}

function fileName({ scope, imageId }: Pick<ImageHold, 'scope' | 'imageId'>): string {
  return `${hexOf(digestOf(JSON.stringify([scope, imageId])))}.json`;
}

function parseHold(text: string): ImageHold | null {
  // Written whole by `#write`; a file that does not parse was damaged from outside.
  try {
    const { scope, imageId, layers, usedAt } = JSON.parse(text) as ImageHold;
    const isHold =
      typeof scope === 'string' &&
      isDigest(imageId) &&
      Array.isArray(layers) &&
      !Number.isNaN(Date.parse(usedAt));
    return isHold ? { scope, imageId, layers, usedAt } : null;
  } catch {
    return null;
  }
}
