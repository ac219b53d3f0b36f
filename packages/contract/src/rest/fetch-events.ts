/** The data of `progress` events: the progress of fetching an image. */
export interface FetchProgress {
  /** The current step, for people. */
  readonly message: string;
  /** Null: this step is not counted. */
  readonly done_bytes: number | null;
  /** Compressed size of all missing layers. */
  readonly total_bytes: number | null;
}

/** The data of the `done` event of a pull. */
export interface PulledImage {
  /** The reference of the request. */
  readonly reference: string;
  /** Digest of the manifest; null when the image came from no registry. */
  readonly digest: string | null;
  /** Unpacked size. */
  readonly size_bytes: number;
}
