import type { PlatformError } from '@svc/contract/errors';
import type { AccessProof } from './image-access.ts';
import { refused } from './image-failures.ts';
import { OPERATOR, type HoldRoom, type ImageHolds } from './image-holds.ts';
import type { ImageLimits } from './image-limits.ts';
import type { ImageRecord, ImageRecords } from './image-records.ts';
import type { ImageProgress } from './images.ts';
import type { LayerArchive } from './layer-archive.ts';
import type { LayerStore } from './layer-store.ts';
import type { ParsedConfig } from './oci-documents.ts';

/** Layers of one image that are unpacked in parallel. Each uses up to three processes, which soon occupy two cores. */
const LAYERS_AT_ONCE = 3;

export interface ImageParts {
  readonly config: ParsedConfig;
  readonly digest: string | null;
  readonly manifestDigest: string | null;
  /** The source of the layer at an index; not read for a layer that is present and `proven`. */
  readonly archive: (index: number) => LayerArchive;
  /** Layers that the caller may use without supplying their bytes, as known when `archive` was filled; by default the current ones. */
  readonly proven?: ReadonlySet<string>;
}

export interface AddOptions {
  readonly layers: LayerStore;
  readonly records: ImageRecords;
  readonly holds: ImageHolds;
  /** The limit for all layers that the scope of the proof holds; null for no limit. */
  readonly maxHeldBytes: number | null;
  readonly limits: ImageLimits;
  /** Why the image may be used. */
  readonly proof: AccessProof;
  readonly onProgress: (progress: ImageProgress) => void;
  readonly signal: AbortSignal;
}

/** Unpacks the missing layers, then records the image under its name. */
export async function addImage(
  reference: string,
  parts: ImageParts,
  options: AddOptions,
): Promise<ImageRecord> {
  const { proven = options.records.provenLayers(options.proof) } = parts;
  using _ = options.layers.hold(parts.config.diffIds);
  await ensureLayers(parts, proven, options);
  return await recordImage(reference, parts, options);
}

/**
 * Unpacks layers from the lowest up, a few in parallel: a small layer spends most of its time starting processes. Each may use what the
 * finished ones have left of the limits, so an image that is too large is noticed up to two layers late.
 */
async function ensureLayers(
  parts: ImageParts,
  proven: ReadonlySet<string>,
  options: AddOptions,
): Promise<void> {
  const { diffIds } = parts.config;
  const stop = new AbortController();
  const signal = AbortSignal.any([options.signal, stop.signal]);
  const waiting = diffIds.entries();
  let { maxUnpackedBytes, maxEntries } = options.limits;
  const work = async () => {
    for (const [index, diffId] of waiting) {
      if (options.layers.get(diffId) === undefined) options.onProgress({ step: 'unpacking', layer: diffId });
      const room = roomFor(diffId, diffIds.slice(0, index), options);
      const limits = { ...options.limits, maxUnpackedBytes, maxEntries, room };
      const wanted = { diffId, isProven: proven.has(diffId) };
      const layer = await options.layers.ensure(wanted, parts.archive(index), limits, signal);
      maxUnpackedBytes -= layer.unpackedBytes;
      maxEntries -= layer.entries;
      if (maxUnpackedBytes < 0 || maxEntries < 0) throw tooLarge(options.limits);
    }
  };
  const workers = Array.from({ length: LAYERS_AT_ONCE }, work);
  try {
    await Promise.all(workers);
  } catch (error) {
    stop.abort(error);
    // No worker is running when this returns.
    await Promise.allSettled(workers);
    throw error;
  }
}

function tooLarge({ maxUnpackedBytes, maxEntries }: ImageLimits): PlatformError {
  return refused(`it holds more than ${maxUnpackedBytes} bytes or ${maxEntries} files once unpacked`);
}

/** The room for one more layer; null without a limit, and for layers that are counted already. */
function roomFor(
  diffId: string,
  below: readonly string[],
  { holds, proof, maxHeldBytes: maximumBytes }: AddOptions,
): HoldRoom | null {
  const scope = proof.scope ?? OPERATOR;
  if (maximumBytes === null || holds.countsFor(scope, diffId)) return null;
  return { maximumBytes, takenBytes: holds.storedBytes(scope, below) };
}

/** Points a name at an image whose layers are present, and records that the scope holds it. */
export async function holdAndName(
  record: Omit<ImageRecord, 'scopes'>,
  { holds, records, proof, maxHeldBytes }: AddOptions,
): Promise<ImageRecord> {
  const scope = proof.scope ?? OPERATOR;
  const isNew = await holds.take(scope, record, maxHeldBytes);
  try {
    return await records.put(record, proof);
  } catch (error) {
    if (isNew) await holds.drop(scope, record.id);
    throw error;
  }
}

/** All layers are present: writing one file makes the image exist. */
export async function recordImage(
  reference: string,
  parts: Omit<ImageParts, 'archive' | 'proven'>,
  options: AddOptions,
): Promise<ImageRecord> {
  const { config } = parts;
  await options.layers.sync(config.diffIds);
  options.signal.throwIfAborted();
  const record = {
    reference,
    id: config.id,
    digest: parts.digest,
    manifestDigest: parts.manifestDigest,
    layers: config.diffIds,
    config: config.config,
    architecture: config.architecture,
    sizeBytes: config.diffIds.reduce(
      (sum, diffId) => sum + (options.layers.get(diffId)?.unpackedBytes ?? 0),
      0,
    ),
    createdAt: config.createdAt ?? new Date().toISOString(),
  };
  return await holdAndName(record, options);
}
