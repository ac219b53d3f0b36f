export interface Volume {
  /** Chosen by the caller; never used as a file name. */
  readonly id: string;
  readonly capacityMib: number;
  readonly createdAt: string;
}

export interface VolumeUsage {
  readonly usedBytes: number;
  readonly capacityBytes: number;
}

export interface VolumeEntry {
  /** Relative to the volume, no leading slash. */
  readonly path: string;
  readonly kind: 'file' | 'directory' | 'symlink' | 'other';
  readonly size: number;
  /** Permission bits. */
  readonly mode: number;
  readonly uid: number;
  readonly gid: number;
  readonly modifiedAt: string | null;
  readonly accessedAt: string | null;
}
