/** A copy of a sandbox's disk at one moment. It never changes. */
export interface SnapshotView {
  readonly id: string;
  readonly sandboxId: string;
  /** The image below the disk. It cannot be removed while the snapshot exists. */
  readonly image: { readonly reference: string; readonly id: string };
  /** The scope of the sandbox, see `CreateSandbox`; null or absent: none. */
  readonly imageScope?: string | null;
  /** The minimum for a sandbox made from it. */
  readonly diskSizeMib: number;
  /** Length of the disk's file, most of which is holes. */
  readonly sizeBytes: number;
  /** Space on this host, when no block is shared. */
  readonly storedBytes: number;
  /** `sha256:…` over the digests of the blocks of the disk's file; docs/operating/disk.md has a program that computes it. */
  readonly digest: string;
  readonly createdAt: string;
}

export interface CreateSnapshot {
  /** 1–128 characters; an id that exists is `name_already_exists`. */
  readonly id: string;
  /** Must not be starting or stopping. The copy holds the lock of the sandbox; a running sandbox continues. */
  readonly sandboxId: string;
}
