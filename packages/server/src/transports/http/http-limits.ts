export interface HttpLimits {
  readonly maxBodyBytes: number;
  readonly maxHeaderBytes: number;
  /** Shared between client addresses when exhausted. */
  readonly maxConnections: number;
  /** Time for the head of a request to arrive, from the connection on. */
  readonly headTimeoutMs: number;
  /** Time for a complete request to arrive; the time for its answer is not limited here. */
  readonly requestTimeoutMs: number;
}

export const DEFAULT_LIMITS: HttpLimits = {
  maxBodyBytes: 2 * 1024 * 1024,
  maxHeaderBytes: 16 * 1024,
  maxConnections: 4096,
  headTimeoutMs: 10_000,
  requestTimeoutMs: 60_000,
};
