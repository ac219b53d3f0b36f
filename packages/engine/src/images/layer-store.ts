import { execFile } from 'node:child_process';
import { chmod, mkdir, readdir, readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { KeyedMutex } from '@svc/contract/async';
import { ArchiveReader } from './archive-reader.ts';
import { checkDigest, hexOf, isDigest } from './digest.ts';
import type { LayerArchive } from './layer-archive.ts';
import type { Staging } from './staging.ts';
import type { LayerLimits, UnpackedLayer } from './unpack-layer.ts';

const run = promisify(execFile);
const BLOCK_BYTES = 4096;

/**
 * The unpacked layers, one folder per diff id, shared by every image that has them.
 * A layer appears whole or not at all (it is unpacked elsewhere, then renamed), and is never written again.
 */
export class LayerStore {
  readonly #folder: string;
  readonly #staging: Staging;
  readonly #archives = new ArchiveReader();
  readonly #layers = new Map<string, UnpackedLayer>();
  readonly #inFlight = new Map<string, Promise<unknown>>();
  readonly #keeping = new KeyedMutex();
  readonly #holds = new Map<string, number>();
  readonly #unsynced = new Set<string>();

  constructor(folder: string, staging: Staging) {
    this.#folder = folder;
    this.#staging = staging;
  }

  async load(): Promise<void> {
    await mkdir(this.#folder, { recursive: true, mode: 0o700 });
    this.#layers.clear();
    for (const name of await readdir(this.#folder)) {
      const layer = await readFile(join(this.#folder, name, 'layer.json'), 'utf8').then(
        parseLayer,
        () => null,
      );
      if (layer !== null && hexOf(layer.diffId) === name) this.#layers.set(layer.diffId, layer);
      else await this.#staging.discard(join(this.#folder, name));
    }
  }

  get(diffId: string): UnpackedLayer | undefined {
    return this.#layers.get(diffId);
  }

  /** The size of a layer: its content, and a block for each file, so that a million empty ones are not free. */
  storedBytes(diffId: string): number {
    const layer = this.#layers.get(diffId);
    return layer === undefined ? 0 : layer.unpackedBytes + layer.entries * BLOCK_BYTES;
  }

  /** The folder that sandboxes mount. */
  folderOf(diffId: string): string {
    // SAFETY: `hexOf` lets nothing but 64 hex digits through, so the joined path stays inside the folder.
    return join(this.#folder, hexOf(diffId), 'fs');
  }

  /** Protects these layers, present or future, from `removeUnused` until disposed. */
  hold(diffIds: readonly string[]): Disposable {
    for (const diffId of diffIds) this.#holds.set(diffId, (this.#holds.get(diffId) ?? 0) + 1);
    return {
      [Symbol.dispose]: () => {
        for (const diffId of diffIds) {
          const left = (this.#holds.get(diffId) ?? 1) - 1;
          if (left === 0) this.#holds.delete(diffId);
          else this.#holds.set(diffId, left);
        }
      },
    };
  }

  /**
   * Returns the layer; unpacks it from `archive` unless it is present or another call unpacks it. A layer that is present and not proven
   * is given only to callers that have its bytes. Hold it first.
   */
  async ensure(
    { diffId, isProven }: { readonly diffId: string; readonly isProven: boolean },
    archive: LayerArchive,
    limits: LayerLimits,
    signal: AbortSignal,
  ): Promise<UnpackedLayer> {
    const name = nameOfWork(diffId, archive);
    for (;;) {
      const present = this.#layers.get(diffId);
      if (present !== undefined) {
        if (isProven) return present;
        const shown = await this.#archives.run('measure', { archive, limits }, signal);
        checkDigest('layer', diffId, shown.diffId);
        return present;
      }
      const other = this.#inFlight.get(name);
      if (other === undefined) break;
      // The caller that unpacks it may be aborted; then we look again, and unpack it ourselves.
      await other.catch(() => {});
      signal.throwIfAborted();
    }
    const work = this.add(archive, diffId, limits, signal);
    this.#inFlight.set(name, work);
    try {
      return await work;
    } finally {
      this.#inFlight.delete(name);
    }
  }

  /** Unpacks an archive that must have the diff id, or, with null, may have any; then `onNamed` is the moment to hold it. */
  async add(
    archive: LayerArchive,
    expected: string | null,
    limits: LayerLimits,
    signal: AbortSignal,
    onNamed: (diffId: string) => void = () => {},
  ): Promise<UnpackedLayer> {
    await using staged = await this.#staging.create();
    const root = join(staged.path, 'layer', 'fs');
    await mkdir(root, { recursive: true, mode: 0o700 });
    // A layer that does not mention its root folder must not hide it from other users of the sandbox.
    await chmod(root, 0o755);
    const layer = await this.#archives.run('unpack', { archive, folder: root, limits }, signal);
    if (expected !== null) checkDigest('layer', expected, layer.diffId);
    onNamed(layer.diffId);
    await writeFile(join(staged.path, 'layer', 'layer.json'), JSON.stringify(layer));
    return await this.#keeping.run(layer.diffId, () => this.#keep(layer, join(staged.path, 'layer')));
  }

  /** The first of several that unpacked the same content is kept. */
  async #keep(layer: UnpackedLayer, unpacked: string): Promise<UnpackedLayer> {
    const present = this.#layers.get(layer.diffId);
    if (present !== undefined) return present;
    await rename(unpacked, join(this.#folder, hexOf(layer.diffId)));
    this.#layers.set(layer.diffId, layer);
    this.#unsynced.add(layer.diffId);
    return layer;
  }

  /** Flushes these layers to the disk, which must happen before a record names them. */
  async sync(diffIds: readonly string[]): Promise<void> {
    if (!diffIds.some((diffId) => this.#unsynced.has(diffId))) return;
    const written = [...this.#unsynced];
    // SAFETY: no shell; the only argument is our own folder.
    await run('sync', ['--file-system', this.#folder]);
    for (const diffId of written) this.#unsynced.delete(diffId);
  }

  /** Removes the layers that are neither held nor wanted, and returns their bytes. */
  async removeUnused(isWanted: (diffId: string) => boolean): Promise<number> {
    const doomed = [...this.#layers.values()].filter(
      ({ diffId }) => !isWanted(diffId) && !this.#holds.has(diffId),
    );
    // Deleted from the index before the first await, so that no image can be built on a layer that is being removed.
    for (const { diffId } of doomed) this.#layers.delete(diffId);
    for (const { diffId } of doomed) await this.#staging.discard(join(this.#folder, hexOf(diffId)));
    return doomed.reduce((bytes, layer) => bytes + layer.unpackedBytes, 0);
  }
}

/**
 * The key of work that callers share: the same bytes with the same diff id. A diff id alone is an unproven claim: a caller with a slow
 * archive could make callers wait that have the layer.
 */
function nameOfWork(diffId: string, archive: LayerArchive): string {
  return `${diffId} ${archive.type === 'file' ? (archive.digest ?? archive.path) : archive.path}`;
}

function parseLayer(text: string): UnpackedLayer | null {
  // Written by `add`; anything else, or a torn file, is not a layer.
  try {
    const layer = JSON.parse(text) as UnpackedLayer;
    return isDigest(layer.diffId) && Number.isFinite(layer.unpackedBytes) ? layer : null;
  } catch {
    return null;
  }
}
