/** Limits for one image. Each applies to the whole image, not to one layer, unless it says so. */
export interface ImageLimits {
  /** Compressed bytes of all layers together. */
  readonly maxDownloadBytes: number;
  /** Bytes of all layers together once decompressed; a compression bomb stops here. */
  readonly maxUnpackedBytes: number;
  /** Files, folders and links of all layers together. */
  readonly maxEntries: number;
  /** How many times its compressed size a layer may unpack to, once it is beyond `freeUnpackBytes`. */
  readonly maxUnpackRatio: number;
  /** Layers that unpack to less than this are not checked for their ratio. */
  readonly freeUnpackBytes: number;
  readonly maxLayers: number;
  /** The limit for a whole path in a layer, or for a link's target. */
  readonly maxNameBytes: number;
  readonly maxDepth: number;
  /** Unpacking stops while at least this much is free on the store's disk. */
  readonly minFreeBytes: number;
  /**
   * A program that reads the image and neither reads nor writes a byte for so long has failed; the limit is ten times as long while it
   * finishes.
   */
  readonly maxIdleMs: number;
}

const GIB = 1024 ** 3;

export const DEFAULT_IMAGE_LIMITS: ImageLimits = {
  maxDownloadBytes: 16 * GIB,
  maxUnpackedBytes: 32 * GIB,
  maxEntries: 1_000_000,
  // Programs and texts compress to a half or a tenth; content that compresses to a hundredth is empty space, or a bomb.
  maxUnpackRatio: 100,
  freeUnpackBytes: 64 * 1024 ** 2,
  // Overlayfs supports 500 lower folders; builders stop at 127.
  maxLayers: 127,
  maxNameBytes: 4095,
  maxDepth: 256,
  minFreeBytes: GIB / 2,
  maxIdleMs: 60_000,
};
