import { availableParallelism } from 'node:os';
import { join, resolve as absolute } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { FairSemaphore } from '@svc/contract/async';
import { PlatformError } from '@svc/contract/errors';
import { parseReference, type Reference } from '@svc/contract/image-reference';
import type { AddOptions } from './add-image.ts';
import { isDigest } from './digest.ts';
import { DEFAULT_IMAGE_LIMITS, type ImageLimits } from './image-limits.ts';
import { isOpenTo, PUBLIC, type AccessProof } from './image-access.ts';
import { inUse, missing, notYours } from './image-failures.ts';
import { ImageHolds, OPERATOR } from './image-holds.ts';
import { ImageRecords, type ImageRecord } from './image-records.ts';
import type { HeldImages, Image, Images, ImportSource, IsImageInUse, ResolveOptions } from './images.ts';
import { LayerStore } from './layer-store.ts';
import { LocalImages, normalizedName } from './local-images.ts';
import { formatReference } from './reference.ts';
import type { RegistrySettings } from './registry.ts';
import type { HostSpace } from '../space/host-space.ts';
import { SharedTasks } from './shared-task.ts';
import { Staging } from './staging.ts';

/** A pull is a few processes, with memory of their own; most of the time it waits for a registry. */
const DEFAULT_MAX_PULLS = Math.max(8, 2 * availableParallelism());

export interface ImageStoreOptions {
  /** Owned by this process alone; made when missing. */
  readonly folder: string;
  readonly isInUse: IsImageInUse;
  readonly limits?: Partial<ImageLimits>;
  /** Without space on the host no image is pulled, imported or built. */
  readonly space?: Pick<HostSpace, 'require' | 'reserveBytes'>;
  /** Aliases of images of this host, where those exist, e.g. `python` for `svc/python`. */
  readonly aliases?: Readonly<Record<string, string>>;
  readonly registries?: Partial<RegistrySettings>;
  /** The limit of concurrent pulls and imports, of all scopes together. */
  readonly maxPulls?: number;
}

/** Images in a folder of this host: `records` (one small file per name), `holds` (one per holder), `layers` (one folder per diff id), `staging`. */
export class ImageStore implements Images {
  readonly #records: ImageRecords;
  readonly #layers: LayerStore;
  readonly #holds: ImageHolds;
  readonly #staging: Staging;
  readonly #limits: ImageLimits;
  readonly #space: ImageStoreOptions['space'];
  readonly #local: LocalImages;
  readonly #isInUse: IsImageInUse;
  readonly #registries: Partial<RegistrySettings>;
  readonly #pulls = new SharedTasks<ImageRecord>();
  readonly #places: FairSemaphore;
  /** Images that are being returned to a caller. */
  readonly #leaving: string[] = [];
  #loaded: Promise<void> | null = null;

  constructor(options: ImageStoreOptions) {
    const folder = absolute(options.folder);
    this.#staging = new Staging(join(folder, 'staging'));
    this.#records = new ImageRecords(join(folder, 'records'));
    this.#layers = new LayerStore(join(folder, 'layers'), this.#staging);
    this.#holds = new ImageHolds(join(folder, 'holds'), (diffId) => this.#layers.storedBytes(diffId));
    const { space } = options;
    const minFreeBytes = space?.reserveBytes ?? DEFAULT_IMAGE_LIMITS.minFreeBytes;
    this.#limits = { ...DEFAULT_IMAGE_LIMITS, minFreeBytes, ...options.limits };
    this.#space = space;
    this.#local = new LocalImages(this.#records, this.#layers, options.aliases ?? {});
    this.#isInUse = options.isInUse;
    this.#registries = options.registries ?? {};
    this.#places = new FairSemaphore(options.maxPulls ?? DEFAULT_MAX_PULLS);
  }

  /** Can be repeated, but only without concurrent calls of this store. */
  async recover(): Promise<void> {
    this.#loaded = this.#load();
    await this.#loaded;
  }

  async resolve(reference: string, options: ResolveOptions): Promise<Image> {
    await this.#ready();
    options.signal.throwIfAborted();
    const isOpen = ({ scopes }: ImageRecord) => isOpenTo(scopes, options.scope);
    if (isDigest(reference))
      return await this.#give(this.#local.find(reference, isOpen) ?? missing(reference), options);
    const parsed = parseReference(reference);
    const name = formatReference(parsed);
    options.onProgress({ step: 'resolving', reference: name });
    const local = this.#local.find(name, isOpen);
    const mayPull = parsed.registry !== null && options.pullPolicy !== 'never';
    if (!mayPull || (local !== undefined && options.pullPolicy === 'if_missing')) {
      const image = await this.#give(local ?? missing(name), options);
      options.onProgress({ step: 'done', id: image.id });
      return image;
    }
    this.#space?.require();
    const proof = { isAnonymous: options.auth === null, scope: options.scope };
    // Credentials are part of the key: a caller gets no private image through the pull of another caller.
    const key = JSON.stringify([name, options.scope, options.auth?.username, options.auth?.password]);
    const start = (onProgress: ResolveOptions['onProgress'], signal: AbortSignal) =>
      this.#wholeOrNothing(
        this.#pull(parsed, options.auth, this.#addOptions(proof, { ...options, onProgress, signal })),
      );
    const pulled = this.#pulls
      .run(key, start, options)
      .catch((error: unknown) => this.#withHint(error, name));
    return this.#done(await pulled, options);
  }

  async import(
    source: ImportSource,
    reference: string,
    options: Omit<ResolveOptions, 'pullPolicy' | 'auth' | 'scope'>,
  ): Promise<Image> {
    await this.#ready();
    const parsed = parseReference(reference);
    if (parsed.digest !== null) {
      throw new PlatformError(
        'invalid_image',
        'Give an import a name with a tag; its digest follows from its content',
      );
    }
    this.#space?.require();
    const add = this.#addOptions(PUBLIC, options);
    const record = await this.#wholeOrNothing(this.#import(source, formatReference(parsed), add));
    return this.#done(record, options);
  }

  async get(referenceOrId: string): Promise<Image | undefined> {
    await this.#ready();
    const record = this.#local.find(isDigest(referenceOrId) ? referenceOrId : normalizedName(referenceOrId));
    return record === undefined ? undefined : this.#local.imageOf(record);
  }

  async list(): Promise<readonly Image[]> {
    await this.#ready();
    const byId = new Map(this.#records.all().map((record) => [record.id, record]));
    // Sorted, because a restart reads the records in the order of their file names.
    return [...byId.values()].map((record) => this.#local.imageOf(record)).toSorted(byAge);
  }

  async held(scope: string): Promise<HeldImages> {
    await this.#ready();
    const images = (await this.list()).flatMap((image) => {
      const own = this.#holds.ofImage(image.id).find((hold) => hold.scope === scope);
      const isProvided = image.scopes === null && this.#holds.isHeldBy(image.id, OPERATOR);
      if (own === undefined && !isProvided) return [];
      const isInUse = this.#isInUse(image.id, scope);
      return [{ image: this.#local.imageFor(image, scope), usedAt: own?.usedAt ?? null, isInUse }];
    });
    return { images, storedBytes: this.#holds.storedBytes(scope) };
  }

  async release(referenceOrId: string, scope: string): Promise<void> {
    await this.#ready();
    const name = isDigest(referenceOrId) ? referenceOrId : normalizedName(referenceOrId);
    const record = this.#local.find(name, ({ scopes }) => isOpenTo(scopes, scope)) ?? missing(name);
    const { id } = record;
    if (!this.#holds.isHeldBy(id, scope)) throw notYours(referenceOrId);
    // `resolve` is handing it out right now; its caller counts it as in use in the same turn (see `Images`).
    while (this.#leaving.includes(id)) await nextTurn();
    if (this.#isInUse(id, scope)) throw inUse(referenceOrId, id);
    const isLast = this.#holds.ofImage(id).every((hold) => hold.scope === scope);
    if (isLast && !this.#isUsed(id)) {
      await this.#removeImages([id]);
      return;
    }
    // The hold first, before any wait: a sandbox that is made meanwhile counts again.
    await this.#holds.drop(scope, id);
    await this.#records.withdraw(id, scope);
  }

  async collect(unusedMs: number): Promise<readonly string[]> {
    await this.#ready();
    const oldest = Date.now() - unusedMs;
    const doomed: string[] = [];
    for (const id of this.#ids()) {
      if (this.#isUsed(id)) {
        await this.#holds.refresh(id, unusedMs / 4);
        continue;
      }
      const holds = this.#holds.ofImage(id);
      const isNamed = this.#records.all().some((record) => record.id === id && record.reference !== null);
      if (isNamed && holds.some(({ scope }) => scope === OPERATOR)) continue;
      if (holds.some(({ usedAt }) => Date.parse(usedAt) > oldest)) continue;
      doomed.push(id);
    }
    return await this.#removeImages(doomed);
  }

  async remove(referenceOrId: string): Promise<void> {
    await this.#ready();
    const name = isDigest(referenceOrId) ? referenceOrId : normalizedName(referenceOrId);
    const exact = isDigest(name) ? undefined : this.#records.find(name);
    const record = exact ?? (isDigest(name) ? this.#local.find(name) : undefined) ?? missing(name);
    const all = this.#records.all().filter(({ id }) => id === record.id);
    const others = all.filter(({ reference }) => reference !== null && reference !== record.reference);
    const goesWhole = isDigest(name) || others.length === 0;
    if (goesWhole && this.#isUsed(record.id)) throw inUse(referenceOrId, record.id);
    if (goesWhole) await this.#removeImages([record.id]);
    else await this.#records.delete(record);
  }

  async prune(): Promise<{ readonly images: readonly string[]; readonly freedBytes: number }> {
    await this.#ready();
    const pruned: string[] = [];
    for (const id of this.#ids()) {
      if (this.#isUsed(id)) continue;
      await this.#forget(id);
      pruned.push(id);
    }
    return { images: pruned, freedBytes: await this.#removeUnusedLayers() };
  }

  #ids(): ReadonlySet<string> {
    return new Set(this.#records.all().map(({ id }) => id));
  }

  #isUsed(id: string): boolean {
    return this.#leaving.includes(id) || this.#isInUse(id);
  }

  /** Removes the images that are still unused. @returns their ids */
  async #removeImages(ids: readonly string[]): Promise<readonly string[]> {
    const removed: string[] = [];
    for (const id of ids) {
      if (this.#isUsed(id)) continue;
      await this.#forget(id);
      removed.push(id);
    }
    if (removed.length > 0) await this.#removeUnusedLayers();
    return removed;
  }

  /** Deletes every name before the first await, so that no caller can be given an image that is being removed. */
  async #forget(id: string): Promise<void> {
    const records = this.#records.all().filter((record) => record.id === id);
    await Promise.all(records.map((record) => this.#records.delete(record)));
    await this.#holds.dropImage(id);
  }

  #ready(): Promise<void> {
    this.#loaded ??= this.#load();
    return this.#loaded;
  }

  async #load(): Promise<void> {
    await this.#staging.clear();
    await this.#records.load();
    await this.#layers.load();
    await this.#holds.load(() => this.#holdsOfRecords());
    for (const record of this.#records.all()) {
      // A layer was deleted by hand: it is better to pull the image again than to keep one that cannot start.
      const isWhole = record.layers.every((diffId) => this.#layers.get(diffId) !== undefined);
      if (!isWhole) await this.#records.delete(record);
    }
    const ids = this.#ids();
    for (const { scope, imageId } of this.#holds.all())
      if (!ids.has(imageId)) await this.#holds.drop(scope, imageId);
    await this.#removeUnusedLayers();
  }

  /** The holds for a folder of a version without them: private images belong to their scopes, all others to the operator. */
  #holdsOfRecords() {
    const usedAt = new Date().toISOString();
    return this.#records
      .all()
      .flatMap(({ id, layers, scopes }) =>
        (scopes ?? [OPERATOR]).map((scope) => ({ scope, imageId: id, layers, usedAt })),
      );
  }

  /** Held until the caller marks it as in use, which it does in the same turn of the event loop, so that it is not collected before. */
  async #give(record: ImageRecord, { scope, maxHeldBytes = null }: ResolveOptions): Promise<Image> {
    this.#leaving.push(record.id);
    try {
      await this.#holds.take(scope ?? OPERATOR, record, maxHeldBytes);
      return this.#local.imageOf(record);
    } finally {
      setImmediate(() => this.#leaving.splice(this.#leaving.indexOf(record.id), 1));
    }
  }

  /** Adds a hint about local images to the error of an unreachable registry. */
  #withHint(error: unknown, name: string): never {
    const alias = this.#local.aliasOf(name);
    if (alias === undefined || !PlatformError.is(error, 'image_pull_failed')) throw error;
    const demo = parseReference(alias).repository.split('/').at(-1);
    const hint = `\`svc image build-demo ${demo}\` makes it here without a registry`;
    throw new PlatformError(error.code, `${error.message}; ${hint}`, {
      details: error.details ?? {},
      cause: error,
    });
  }

  /** Removes the new layers of an image when adding it fails. */
  async #wholeOrNothing(adding: Promise<ImageRecord>): Promise<ImageRecord> {
    try {
      return await adding;
    } catch (error) {
      // The first error is reported; layers that cannot be removed now are removed by the next `recover`.
      await this.#removeUnusedLayers().catch(() => {});
      throw error;
    }
  }

  /** The code that reads images is loaded on first use, so that engines start quickly. */
  async #pull(reference: Reference, auth: ResolveOptions['auth'], options: AddOptions): Promise<ImageRecord> {
    using _ = await this.#turn(options);
    const { ImagePuller } = await import('./pull-image.ts');
    return await new ImagePuller(this.#staging, this.#registries).pull(reference, auth, options);
  }

  async #import(source: ImportSource, reference: string, options: AddOptions): Promise<ImageRecord> {
    using _ = await this.#turn(options);
    const { importImage } = await import('./import-image.ts');
    return await importImage(source, reference, this.#staging, options);
  }

  #turn({ proof, onProgress, signal }: AddOptions): Promise<Disposable> {
    return this.#places.acquire(proof.scope, () => onProgress({ step: 'waiting' }), signal);
  }

  #removeUnusedLayers(): Promise<number> {
    const wanted = new Set(this.#records.all().flatMap(({ layers }) => layers));
    return this.#layers.removeUnused((diffId) => wanted.has(diffId));
  }

  #addOptions(
    proof: AccessProof,
    {
      maxHeldBytes = null,
      onProgress,
      signal,
    }: Pick<ResolveOptions, 'maxHeldBytes' | 'onProgress' | 'signal'>,
  ): AddOptions {
    const stores = { layers: this.#layers, records: this.#records, holds: this.#holds };
    return { ...stores, maxHeldBytes, limits: this.#limits, proof, onProgress, signal };
  }

  #done(record: ImageRecord, options: Pick<ResolveOptions, 'onProgress'>): Image {
    options.onProgress({ step: 'done', id: record.id });
    return this.#local.imageOf(record);
  }
}

function byAge(a: Image, b: Image): number {
  if (a.createdAt !== b.createdAt) return a.createdAt < b.createdAt ? -1 : 1;
  return a.id < b.id ? -1 : 1;
}
