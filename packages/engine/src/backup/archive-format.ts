/** First line of every backup file, in every format version. `file` and people identify a backup by it. */
export const MAGIC = Buffer.from('svc-backup\n');
/** Raised when older versions of svc can no longer read the format. */
export const FORMAT = 1;

/** Frame header: one byte for the type, four for the length of the payload. */
export const FRAME = { head: 1, piece: 2, data: 3, pieceEnd: 4, end: 5 } as const;
export const FRAME_HEADER_BYTES = 5;
/** Prefix of a data frame's payload: the offset in the piece. */
export const OFFSET_BYTES = 8;
/** Largest payload of one frame; readers hold one frame in memory at a time. */
export const MAX_DATA_BYTES = 1024 * 1024;
export const MAX_JSON_BYTES = 64 * 1024;

/** Header of an archive. */
export interface ArchiveHead {
  readonly format: number;
  /** Version of the svc that wrote it. */
  readonly version: string;
  readonly createdAt: string;
  /** False: the rows are in a PostgreSQL database, which is backed up separately. */
  readonly hasStore: boolean;
  /** False: the archive has no disks, volumes, snapshots or images. */
  readonly hasDisks: boolean;
}

/** Bytes at an offset of a piece. Offsets ascend; gaps between them are holes. */
export interface PieceData {
  readonly offset: number;
  readonly bytes: Buffer;
}

/** A file, by its path in the data folder; or the tar of a layer, whose size is known only at its end. */
export interface Piece {
  readonly path: string;
  readonly sizeBytes: number | null;
  readonly data: AsyncIterable<PieceData>;
}

/** Last frame of an archive; an archive without it is truncated. */
export interface ArchiveEnd {
  readonly pieces: number;
  /** Checksum over the checksums of all pieces, in order. */
  readonly sha256: string;
}
