/** A file begins with this line, whatever its format: `file` and people know it by it. */
export const MAGIC = Buffer.from('svc-backup\n');
/** Raised when an older svc could not read it any more. */
export const FORMAT = 1;

/** What a frame is: one byte for the type, four for the length of what follows. */
export const FRAME = { head: 1, piece: 2, data: 3, pieceEnd: 4, end: 5 } as const;
export const FRAME_HEADER_BYTES = 5;
/** In front of the bytes of a data frame: their place in the piece. */
export const OFFSET_BYTES = 8;
/** Of one frame's bytes; whoever reads holds one frame at a time. */
export const MAX_DATA_BYTES = 1024 * 1024;
export const MAX_JSON_BYTES = 64 * 1024;

/** What is said of an archive before anything of it. */
export interface ArchiveHead {
  readonly format: number;
  /** Of the svc that wrote it. */
  readonly version: string;
  readonly createdAt: string;
  /** False: the rows are in a PostgreSQL database that is backed up by its own means. */
  readonly hasStore: boolean;
  /** False: neither disks nor volumes, snapshots, images. */
  readonly hasDisks: boolean;
}

/** Bytes at a place of a piece. Places come in order; what lies between them is a hole. */
export interface PieceData {
  readonly offset: number;
  readonly bytes: Buffer;
}

/** A file, by its path in the data folder; or the tar of a layer, whose size nobody knows before its end. */
export interface Piece {
  readonly path: string;
  readonly sizeBytes: number | null;
  readonly data: AsyncIterable<PieceData>;
}

/** What an archive ends with: without it, it is cut off. */
export interface ArchiveEnd {
  readonly pieces: number;
  /** Over the checksums of all pieces, in their order. */
  readonly sha256: string;
}
