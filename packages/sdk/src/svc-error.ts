import { isErrorCode, type ErrorCode, type ErrorDetails } from '@svc/contract/errors';

/**
 * The error codes of a call: those of the server, and those of the client itself.
 * - `connection_failed`: no answer came; whether the call took effect is unknown.
 * - `timeout`: the time limit of the call is over.
 * - `aborted`: the caller's signal aborted.
 * - `git_missing`: the image of the sandbox has no git.
 * - `git_authentication_failed`: a remote refused the credentials, or there were none.
 * - `not_a_repository`: there is no repository of git at this path or address.
 * - `git_failed`: git refused for another reason; `details.stderr` has what it said.
 */
export type SvcErrorCode =
  | ErrorCode
  | 'connection_failed'
  | 'timeout'
  | 'aborted'
  | 'git_missing'
  | 'git_authentication_failed'
  | 'not_a_repository'
  | 'git_failed';

export interface SvcErrorOptions {
  readonly status?: number | null;
  readonly details?: ErrorDetails | null;
  readonly requestId?: string | null;
  readonly cause?: unknown;
  readonly retryAfterMs?: number;
}

/** The error class of this library. Act on `code`; `message` is for people and says what to do. */
export class SvcError extends Error {
  readonly code: SvcErrorCode;
  /** Of the HTTP answer; null when there was none. */
  readonly status: number | null;
  readonly details: ErrorDetails | null;
  /** The id of the request in the log of the server; null when there was no answer. */
  readonly requestId: string | null;
  /** How long the server asks to wait before the call is repeated. */
  readonly retryAfterMs: number | null;

  constructor(code: SvcErrorCode, message: string, options: SvcErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = 'SvcError';
    this.code = code;
    this.status = options.status ?? null;
    this.details = options.details ?? null;
    this.requestId = options.requestId ?? null;
    this.retryAfterMs = options.retryAfterMs ?? null;
  }

  /** Whether an error is a SvcError, and has this code when one is given. */
  static is(error: unknown, code?: SvcErrorCode): error is SvcError {
    return error instanceof SvcError && (code === undefined || error.code === code);
  }
}

/** The error of an answer that is no success. The body may be anything: a proxy may have written it. */
export function errorOfAnswer(status: number, headers: Pick<Headers, 'get'>, text: string): SvcError {
  const { code, message, details } = readEnvelope(text);
  const retryAfterSeconds = Number(headers.get('retry-after') ?? Number.NaN);
  const known = isErrorCode(code) ? code : codeOfStatus(status);
  return new SvcError(known, message ?? `The server answered with status ${status}`, {
    status,
    details: isErrorCode(code) || code === undefined ? details : { ...details, code },
    requestId: headers.get('x-request-id'),
    ...(retryAfterSeconds >= 0 ? { retryAfterMs: retryAfterSeconds * 1000 } : {}),
  });
}

/** The error of an `error` event, which has the same envelope as an answer. */
export function errorOfEnvelope(envelope: unknown): SvcError {
  const { code, message, details } = readEnvelope(JSON.stringify(envelope));
  const known = isErrorCode(code) ? code : 'internal';
  return new SvcError(known, message ?? 'The server met a failure that it did not explain', { details });
}

function readEnvelope(text: string): {
  readonly code?: unknown;
  readonly message?: string;
  readonly details: ErrorDetails | null;
} {
  try {
    const { error } = JSON.parse(text) as {
      error?: { code?: unknown; message?: unknown; details?: unknown };
    };
    const { code, message, details } = error ?? {};
    const isRecord = typeof details === 'object' && details !== null;
    // Checked to be an object in the line above.
    const known = isRecord ? (details as ErrorDetails) : null;
    return {
      code,
      ...(typeof message === 'string' ? { message: withReason(message, known) } : {}),
      details: known,
    };
  } catch {
    // The body has no envelope, so the status decides.
    return { details: null };
  }
}

/** Where the specification gives the server a fixed message, the cause is in the details. */
function withReason(message: string, details: ErrorDetails | null): string {
  const reason = details?.['reason'];
  const isFixed = message === 'unauthorized' || message === 'orchestrator unreachable';
  return isFixed && typeof reason === 'string' ? `${message}: ${reason}` : message;
}

/** For a code that this version does not know, or an answer of a proxy. */
function codeOfStatus(status: number): ErrorCode {
  if (status === 401) return 'invalid_api_key';
  if (status === 403) return 'forbidden';
  if (status === 404) return 'not_found';
  if (status === 429) return 'rate_limited';
  if (status === 502 || status === 503 || status === 504) return 'unavailable';
  return status < 500 ? 'invalid_request' : 'internal';
}
