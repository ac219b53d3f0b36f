import { rm, stat } from 'node:fs/promises';
import { PlatformError } from '@svc/contract/errors';
import type { Logger } from 'pino';
import { digestBlocks } from './block-digest.ts';
import { dataRanges, type DataRange } from './data-ranges.ts';
import { SnapshotRecords, type StoredSnapshot } from './snapshot-records.ts';
import { allocatedBytesOf } from '../host/allocated-bytes.ts';
import { Worker } from 'node:worker_threads';
import { abortable, KeyedMutex } from '@svc/contract/async';
import type { SnapshotView } from '@svc/contract/orchestrator';

/** What a snapshot is made of. */
export interface SnapshotSource extends Pick<
  SnapshotView,
  'sandboxId' | 'image' | 'imageScope' | 'diskSizeMib'
> {
  /** Copies the disk to a new file. */
  saveDisk(file: string, signal: AbortSignal): Promise<void>;
}

/**
 * Copies of the disks of sandboxes, kept for sandboxes to begin with.
 * - A snapshot exists whole or not at all: what fails or is killed half-way leaves nothing after the next `recover`.
 * - It never changes. Sandboxes made from it have copies of their own, so `remove` is always legal, and succeeds when it is gone.
 * - The image that it was made on counts as in use as long as it exists or is being made.
 */
export class Snapshots {
  readonly #records: SnapshotRecords;
  readonly #logger: Logger;
  /** By id: what is being made, so that two with one id cannot both succeed. */
  readonly #making = new Map<string, SnapshotSource>();
  readonly #removals = new KeyedMutex();
  /** By folder: copies under way. */
  readonly #readers = new Map<string, Set<Promise<unknown>>>();

  constructor(folder: string, logger: Logger) {
    this.#records = new SnapshotRecords(folder);
    this.#logger = logger;
  }

  /** Before anything else of this is called; repeating it changes nothing. */
  async recover(): Promise<void> {
    for (const folder of await this.#records.load())
      this.#logger.error({ folder }, 'the record of a snapshot is damaged; it is left as it is');
  }

  async create(id: string, source: SnapshotSource, signal: AbortSignal): Promise<SnapshotView> {
    if (this.#making.has(id) || this.#records.get(id) !== undefined) throw taken(id);
    this.#making.set(id, source);
    try {
      return await this.#make(id, source, signal);
    } finally {
      this.#making.delete(id);
    }
  }

  get(id: string): SnapshotView {
    return this.#stored(id).view;
  }

  list(): readonly SnapshotView[] {
    return this.#records.list().map(({ view }) => view);
  }

  /** Succeeds when there is no such snapshot. */
  async remove(id: string): Promise<void> {
    // One after the other: two servers clear away the same ones.
    await this.#removals.run(id, async () => {
      const stored = this.#records.get(id);
      if (stored === undefined) return;
      await this.#records.forget(stored);
      const readers = this.#readers.get(stored.folder) ?? new Set<Promise<unknown>>();
      await Promise.allSettled(readers);
      await rm(stored.folder, { recursive: true, force: true });
    });
  }

  /** Lets `copy` read the disk; the file stays until it is done, also when the snapshot is removed meanwhile. */
  async read(id: string, copy: (disk: string) => Promise<void>): Promise<void> {
    const { folder, disk } = this.#stored(id);
    const readers = this.#readers.get(folder) ?? new Set();
    this.#readers.set(folder, readers);
    const copying = copy(disk);
    readers.add(copying);
    try {
      await copying;
    } finally {
      readers.delete(copying);
      if (readers.size === 0) this.#readers.delete(folder);
    }
  }

  /** With a scope: by a snapshot that was made for it. */
  isImageInUse(imageId: string, scope?: string): boolean {
    return [...this.#making.values(), ...this.list()].some(
      ({ image, imageScope }) => image.id === imageId && (scope === undefined || imageScope === scope),
    );
  }

  async #make(id: string, source: SnapshotSource, signal: AbortSignal): Promise<SnapshotView> {
    const { sandboxId, image, imageScope, diskSizeMib } = source;
    const createdAt = new Date().toISOString();
    await using undo = new AsyncDisposableStack();
    const { folder, disk } = await this.#records.prepare();
    undo.defer(() => rm(folder, { recursive: true, force: true }));
    await source.saveDisk(disk, signal);
    // The sandbox is free again from here on.
    const digest = await digestDisk(disk, signal);
    const status = await stat(disk);
    const { size: sizeBytes } = status;
    const storedBytes = allocatedBytesOf(status);
    const view = {
      id,
      sandboxId,
      image,
      ...(typeof imageScope === 'string' ? { imageScope } : {}),
      diskSizeMib,
      sizeBytes,
      storedBytes,
      digest,
      createdAt,
    };
    signal.throwIfAborted();
    await this.#records.save({ view, folder, disk });
    undo.move();
    return view;
  }

  #stored(id: string): StoredSnapshot {
    const stored = this.#records.get(id);
    if (stored !== undefined) return stored;
    const details = { snapshot: id };
    throw new PlatformError(
      'snapshot_not_found',
      `there is no snapshot ${id}; list them to see which exist`,
      {
        details,
      },
    );
  }
}

function taken(id: string): PlatformError {
  const message = `a snapshot ${id} exists already; remove it or choose another id`;
  return new PlatformError('name_already_exists', message, { details: { snapshot: id } });
}

/** Up to this size hashing is faster than starting a thread, and does not delay requests noticeably. */
const FEW_BYTES = 16 * 2 ** 20;
const FEW_VIRTUAL_BYTES = 16 * 2 ** 30;

async function digestDisk(path: string, signal: AbortSignal): Promise<string> {
  const { size } = await stat(path);
  const ranges = await dataRanges(path, size, signal);
  const dataBytes = ranges.reduce((sum, { start, end }) => sum + end - start, 0);
  if (dataBytes <= FEW_BYTES && size <= FEW_VIRTUAL_BYTES) return await digestBlocks(path, ranges);
  return await digestOnThread({ path, ranges }, signal);
}

/** A gigabyte keeps a processor busy for about a second. When this returns, also after an abort, the thread is over. */
async function digestOnThread(
  workerData: { readonly path: string; readonly ranges: readonly DataRange[] },
  signal: AbortSignal,
): Promise<string> {
  signal.throwIfAborted();
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const worker = new Worker(new URL('./digest-thread.ts', import.meta.url), { workerData, env: {} });
  worker.once('message', (digest: string) => resolve(digest));
  worker.once('error', reject);
  worker.once('exit', () => reject(new Error('the thread that hashes disks ended')));
  try {
    return await abortable(promise, signal);
  } finally {
    await worker.terminate();
  }
}
