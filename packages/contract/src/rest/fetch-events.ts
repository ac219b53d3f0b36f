/** The data of `progress` events: how far the image of a sandbox is. */
export interface FetchProgress {
  /** What is being done, for people. */
  readonly message: string;
  /** Null: this step is not counted. */
  readonly done_bytes: number | null;
  /** Of all layers that were missing, compressed. */
  readonly total_bytes: number | null;
}

/** The data of the `done` event of a pull. */
export interface PulledImage {
  /** As it was asked for. */
  readonly reference: string;
  /** Of its manifest; null when it came from no registry. */
  readonly digest: string | null;
  /** Unpacked. */
  readonly size_bytes: number;
}
