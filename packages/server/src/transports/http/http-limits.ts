export interface HttpLimits {
  readonly maxBodyBytes: number;
  readonly maxHeaderBytes: number;
  readonly maxConnections: number;
  /** For a request to arrive whole; how long its answer takes is another matter. */
  readonly requestTimeoutMs: number;
}

export const DEFAULT_LIMITS: HttpLimits = {
  maxBodyBytes: 2 * 1024 * 1024,
  maxHeaderBytes: 16 * 1024,
  maxConnections: 4096,
  requestTimeoutMs: 60_000,
};
