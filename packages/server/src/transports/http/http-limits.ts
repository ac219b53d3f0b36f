export interface HttpLimits {
  readonly maxBodyBytes: number;
  readonly maxHeaderBytes: number;
  /** Shared between client addresses when all are taken. */
  readonly maxConnections: number;
  /** For the head of a request to arrive, from the connection on. */
  readonly headTimeoutMs: number;
  /** For a request to arrive whole; how long its answer takes is another matter. */
  readonly requestTimeoutMs: number;
}

export const DEFAULT_LIMITS: HttpLimits = {
  maxBodyBytes: 2 * 1024 * 1024,
  maxHeaderBytes: 16 * 1024,
  maxConnections: 4096,
  headTimeoutMs: 10_000,
  requestTimeoutMs: 60_000,
};
