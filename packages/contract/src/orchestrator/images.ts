/** How to run the image, as in the configuration of the OCI image specification. */
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

export interface RegistryAuth {
  readonly username: string;
  readonly password: string;
}

export type PullPolicy = 'if_missing' | 'always' | 'never';

export interface ImageView {
  readonly id: string;
  readonly digest: string | null;
  readonly references: readonly string[];
  readonly config: ImageConfig;
  readonly architecture: string;
  readonly sizeBytes: number;
  readonly createdAt: string;
  /** Scopes that may use it without asking its registry; null: all. */
  readonly scopes: readonly string[] | null;
  readonly layers: number;
}

export interface PullImage {
  readonly reference: string;
  readonly policy?: PullPolicy;
  readonly auth?: RegistryAuth | null;
  /** Opaque, at most 128 characters. Images pulled with credentials are available to this scope only; see `imageScope`. */
  readonly scope?: string;
  /** As in `CreateSandbox`. */
  readonly maxHeldBytes?: number | null;
}

/** The images that a scope holds, and those of the operator. */
export interface HeldImagesView {
  readonly images: readonly HeldImageView[];
  /** Space of the scope's images, each layer counted once: content, and 4 KiB for each file. */
  readonly storedBytes: number;
}

export interface HeldImageView extends ImageView {
  /** When the scope last used it; null for images of the operator. */
  readonly usedAt: string | null;
  /** In use by a sandbox or a snapshot of the scope. */
  readonly isInUse: boolean;
}

export interface FetchedImage {
  /** Of its manifest; null when it came from no registry. */
  readonly digest: string | null;
  readonly sizeBytes: number;
}

export interface FetchProgress {
  readonly message: string;
  readonly doneBytes: number | null;
  readonly totalBytes: number | null;
}
