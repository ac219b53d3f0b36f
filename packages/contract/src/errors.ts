/**
 * Every error a caller can see, with the HTTP status that transports send for it.
 * Codes are public: add, never rename or reuse.
 */
export const ERROR_STATUS = {
  invalid_request: 400,
  invalid_sandbox_config: 400,
  invalid_volume_path: 400,
  invalid_cursor: 400,
  invalid_image: 400,
  invalid_api_key: 401,
  sign_in_failed: 401,
  forbidden: 403,
  network_ceiling_exceeded: 403,
  not_found: 404,
  sandbox_not_found: 404,
  volume_not_found: 404,
  volume_file_not_found: 404,
  event_not_found: 404,
  org_not_found: 404,
  image_not_found: 404,
  process_not_found: 404,
  context_not_found: 404,
  snapshot_not_found: 404,
  method_not_allowed: 405,
  name_already_exists: 409,
  invalid_state_transition: 409,
  image_in_use: 409,
  volume_in_use: 409,
  idempotency_conflict: 409,
  sandbox_not_running: 409,
  context_lost: 409,
  precondition_failed: 412,
  payload_too_large: 413,
  range_not_satisfiable: 416,
  isolation_unavailable: 422,
  snapshot_ineligible: 422,
  quota_exceeded: 429,
  rate_limited: 429,
  internal: 500,
  image_pull_failed: 502,
  orchestrator_unreachable: 502,
  unavailable: 503,
  insufficient_capacity: 503,
  disk_full: 507,
  insufficient_storage: 507,
  exec_failed: 422,
  exec_timeout: 504,
  start_failed: 500,
} as const satisfies Record<string, number>;

export type ErrorCode = keyof typeof ERROR_STATUS;

export type ErrorDetails = Readonly<Record<string, unknown>>;

/** What callers see on every failure: a code from the table, a sentence saying what to do, details. */
export interface ErrorEnvelope {
  readonly error: {
    readonly code: ErrorCode;
    readonly message: string;
    readonly details: ErrorDetails | null;
  };
}

/** A failure that a caller can act on. Anything else that is thrown is a bug and becomes `internal`. */
export class PlatformError extends Error {
  readonly code: ErrorCode;
  readonly details: ErrorDetails | null;
  /** The request was well formed, but what it would change does not allow it; for codes that can mean either. */
  readonly isConflict: boolean;

  constructor(
    code: ErrorCode,
    message: string,
    options: { details?: ErrorDetails; cause?: unknown; isConflict?: boolean } = {},
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = 'PlatformError';
    this.code = code;
    this.details = options.details ?? null;
    this.isConflict = options.isConflict ?? false;
  }

  /** Checks the name instead of the class: a built program has this class twice when it loads a part that is not built. */
  static is(error: unknown, code?: ErrorCode): error is PlatformError {
    if (!(error instanceof Error) || error.name !== 'PlatformError') return false;
    return code === undefined || ('code' in error && error.code === code);
  }
}

export function isErrorCode(value: unknown): value is ErrorCode {
  return typeof value === 'string' && Object.hasOwn(ERROR_STATUS, value);
}

/** Reads the error envelope of another svc process; undefined when the text is no such envelope. */
export function readEnvelope(text: string): PlatformError | undefined {
  try {
    const { error } = JSON.parse(text) as ErrorEnvelope;
    const details = error.details === null ? {} : { details: error.details };
    return isErrorCode(error.code) ? new PlatformError(error.code, error.message, details) : undefined;
  } catch {
    // The caller reports its own error instead.
    return undefined;
  }
}
