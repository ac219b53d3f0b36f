import type { ImageConfig, PullPolicy, RegistryAuth } from '@svc/contract/orchestrator';

export interface Image {
  /** `sha256:…` of the image's configuration, which identifies its content. */
  readonly id: string;
  /** `sha256:…` of the manifest as the registry serves it; null for imports that have none. */
  readonly digest: string | null;
  /** All names of the image. */
  readonly references: readonly string[];
  /** Absolute folders, lowest first. Shared by all sandboxes; never written. */
  readonly layers: readonly string[];
  readonly config: ImageConfig;
  readonly architecture: string;
  readonly sizeBytes: number;
  readonly createdAt: string;
  /** The scopes that may use it without asking its registry; null: everyone. */
  readonly scopes: readonly string[] | null;
}

export type ImageProgress =
  | { readonly step: 'resolving'; readonly reference: string }
  /** Waits for other pulls: the limit of all callers, or of this one, is reached. */
  | { readonly step: 'waiting' }
  /** Compressed bytes of all missing layers. */
  | { readonly step: 'downloading'; readonly doneBytes: number; readonly totalBytes: number }
  | { readonly step: 'unpacking'; readonly layer: string }
  | { readonly step: 'building'; readonly message: string }
  | { readonly step: 'done'; readonly id: string };

export interface ResolveOptions {
  readonly pullPolicy: PullPolicy;
  /** Null pulls anonymously. */
  readonly auth: RegistryAuth | null;
  /** The scope that requests it; null is a scope like any other. */
  readonly scope: string | null;
  /** The limit for `storedBytes` of all images that the scope holds; absent or null: no limit. */
  readonly maxHeldBytes?: number | null;
  readonly onProgress: (progress: ImageProgress) => void;
  readonly signal: AbortSignal;
}

/** What to import. A root file system has no configuration, so `config` may supply one. */
export type ImportSource =
  | { readonly type: 'folder'; readonly path: string; readonly config?: Partial<ImageConfig> }
  | { readonly type: 'tar'; readonly path: string; readonly config?: Partial<ImageConfig> }
  | { readonly type: 'oci_layout'; readonly path: string }
  | { readonly type: 'docker_archive'; readonly path: string };

/**
 * Stores images, each layer unpacked once.
 * - `resolve` pulls when the policy says so; concurrent calls for one reference pull once. A reference with `@sha256:…` is that content or
 *   an error.
 * - An image that was pulled with credentials is available under that name only to callers of the same scope; for all others it is missing,
 *   until their own pull shows that the registry serves it to them too. A successful anonymous pull makes it public, as an import is. This
 *   holds for the name, its digest and its id alike.
 * - Every layer's bytes match their digest and diff id, or no part of the image is kept.
 * - A pull or import that fails or is killed leaves no image and no reference; the next `recover` removes leftover files.
 * - `remove` of a reference removes the image with its last reference, unless a sandbox uses it (`image_in_use`).
 * - A caller that resolves an image with a scope becomes a holder of it, unless the operator holds it. The operator is the caller that
 *   names no scope, or imports. The images a scope holds count for it, each layer once: with more than `maxHeldBytes` it gets no other
 *   (`quota_exceeded`).
 * - `release` gives the image up for one scope, unless a sandbox of that scope uses it (`image_in_use`); other scopes are not affected. The
 *   image is removed when it has no holder and no user.
 * - `collect` removes unused images that neither their holders nor a sandbox have used for so long. The operator's stay, as long as they
 *   have a name.
 * - `prune` removes unused images, and layers without an image; it returns what it freed.
 * - Hostile content cannot write outside its layer folder, and the unpacked files have no device nodes but overlay whiteouts (0/0).
 * - The caller of `resolve` counts the image as in use (`IsImageInUse`) in the same turn of the event loop in which `resolve` answers;
 *   until then the store protects it.
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
  /** When the scope last used it; null for images of the operator. */
  readonly usedAt: string | null;
  /** True when a sandbox or a snapshot of the scope uses it. */
  readonly isInUse: boolean;
}

export interface HeldImages {
  /** Images that the scope holds, and those of the operator. */
  readonly images: readonly HeldImage[];
  /** The size of the scope's images, each layer once. */
  readonly storedBytes: number;
}

/** Whether an image is in use and must stay; with a scope: in use by an object of that scope. */
export type IsImageInUse = (imageId: string, scope?: string) => boolean;
