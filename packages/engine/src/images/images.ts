/** What an image says about how to run it, as the OCI image specification defines it. */
export interface ImageConfig {
  readonly entrypoint: readonly string[];
  readonly cmd: readonly string[];
  /** `KEY=VALUE` */
  readonly env: readonly string[];
  readonly workdir: string | null;
  readonly user: string | null;
  readonly labels: Readonly<Record<string, string>>;
  readonly stopSignal: string | null;
}

export interface Image {
  /** `sha256:…` of the image's configuration: names its content. */
  readonly id: string;
  /** `sha256:…` of the manifest as the registry serves it; null for imports that have none. */
  readonly digest: string | null;
  /** Every name that leads here. */
  readonly references: readonly string[];
  /** Absolute folders, lowest first. Shared by all sandboxes; never written. */
  readonly layers: readonly string[];
  readonly config: ImageConfig;
  readonly architecture: string;
  readonly sizeBytes: number;
  readonly createdAt: string;
  /** Who may use it without asking its registry; null: everybody. */
  readonly scopes: readonly string[] | null;
}

export interface RegistryAuth {
  readonly username: string;
  readonly password: string;
}

export type ImageProgress =
  | { readonly step: 'resolving'; readonly reference: string }
  /** For other pulls to end: as many are under way as may be, of all callers or of this one. */
  | { readonly step: 'waiting' }
  /** Of all layers that were missing, compressed. */
  | { readonly step: 'downloading'; readonly doneBytes: number; readonly totalBytes: number }
  | { readonly step: 'unpacking'; readonly layer: string }
  | { readonly step: 'building'; readonly message: string }
  | { readonly step: 'done'; readonly id: string };

export type PullPolicy = 'if_missing' | 'always' | 'never';

export interface ResolveOptions {
  readonly pullPolicy: PullPolicy;
  /** Null pulls anonymously. */
  readonly auth: RegistryAuth | null;
  /** For whom it is wanted; null is a scope like any other. */
  readonly scope: string | null;
  /** How much all images that the scope holds may take, `storedBytes`; absent or null: as much as they like. */
  readonly maxHeldBytes?: number | null;
  readonly onProgress: (progress: ImageProgress) => void;
  readonly signal: AbortSignal;
}

/** What to import. A root file system says nothing about how to run it, so `config` may. */
export type ImportSource =
  | { readonly type: 'folder'; readonly path: string; readonly config?: Partial<ImageConfig> }
  | { readonly type: 'tar'; readonly path: string; readonly config?: Partial<ImageConfig> }
  | { readonly type: 'oci_layout'; readonly path: string }
  | { readonly type: 'docker_archive'; readonly path: string };

/**
 * Holds images, each layer unpacked once.
 * - `resolve` pulls when the policy says so; concurrent calls for one reference pull once. A reference with `@sha256:…` is that content or an error.
 * - What was pulled with credentials is, under that name, there for callers of the same scope alone; for all others it is missing, until
 *   their own pull shows that the registry gives it to them too. An anonymous pull that succeeds makes it everybody's, and so is
 *   what was imported. The name counts, its digest and its id alike.
 * - Every layer's bytes match their digest and diff id, or nothing of the image is kept.
 * - A pull or import that fails or is killed leaves no image and no reference; leftovers go at the next `recover`.
 * - `remove` of a reference removes the image with its last reference, unless a sandbox uses it (`image_in_use`).
 * - Whoever resolves an image with a scope holds it, unless the operator does, who names no scope or imports. What a scope holds
 *   counts for it, each layer once: with more than `maxHeldBytes` it gets no other (`quota_exceeded`).
 * - `release` gives the image up for one scope, unless a sandbox of that scope uses it (`image_in_use`); nothing else changes for
 *   others. The image goes when nobody holds it and nothing uses it.
 * - `collect` removes images without use that neither their holders nor a sandbox have used for so long. The operator's stay, as
 *   long as they have a name.
 * - `prune` removes images without use, and layers without an image; it returns what it freed.
 * - Hostile content cannot write outside its layer folder, and what is unpacked has no device nodes but overlay whiteouts (0/0).
 * - Whoever resolves an image has it counted as in use (`IsImageInUse`) in the same turn that `resolve` answers; until then nobody holds it.
 */
export interface Images {
  recover(): Promise<void>;
  resolve(reference: string, options: ResolveOptions): Promise<Image>;
  import(
    source: ImportSource,
    reference: string,
    options: Omit<ResolveOptions, 'pullPolicy' | 'auth' | 'scope'>,
  ): Promise<Image>;
  get(referenceOrId: string): Promise<Image | undefined>;
  list(): Promise<readonly Image[]>;
  held(scope: string): Promise<HeldImages>;
  remove(referenceOrId: string): Promise<void>;
  release(referenceOrId: string, scope: string): Promise<void>;
  collect(unusedMs: number): Promise<readonly string[]>;
  prune(): Promise<{ readonly images: readonly string[]; readonly freedBytes: number }>;
}

export interface HeldImage {
  readonly image: Image;
  /** When the scope last did; null for what the operator provides. */
  readonly usedAt: string | null;
  /** By a sandbox or a snapshot of the scope. */
  readonly isInUse: boolean;
}

export interface HeldImages {
  /** Those of the scope, and those that the operator provides. */
  readonly images: readonly HeldImage[];
  /** What those of the scope take, each layer once. */
  readonly storedBytes: number;
}

/** Tells which images may not go; with a scope: because of something that was made for it. */
export type IsImageInUse = (imageId: string, scope?: string) => boolean;
