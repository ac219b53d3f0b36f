import { isErrorCode, type ErrorCode, type ErrorDetails } from '@svc/contract/errors';

/**
 * What a call can fail with: a code of the server, or one of the client itself.
 * - `connection_failed`: no answer came; whether the call took effect is unknown.
 * - `timeout`: the time that the call was given is over.
 * - `aborted`: the caller's signal aborted.
 */
export type SvcErrorCode = ErrorCode | 'connection_failed' | 'timeout' | 'aborted';

export interface SvcErrorOptions {
  readonly status?: number | null;
  readonly details?: ErrorDetails | null;
  readonly requestId?: string | null;
  readonly cause?: unknown;
  readonly retryAfterMs?: number;
}

/** Everything that this library throws. Act on `code`; `message` is for people and says what to do. */
export class SvcError extends Error {
  readonly code: SvcErrorCode;
  /** Of the HTTP answer; null when there was none. */
  readonly status: number | null;
  readonly details: ErrorDetails | null;
  /** Under which the log of the server knows the request; null when there was no answer. */
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

  /** Whether an error is ours, and of this code when one is given. */
  static is(error: unknown, code?: SvcErrorCode): error is SvcError {
    return error instanceof SvcError && (code === undefined || error.code === code);
  }
}

/** What an answer that is no success says. The body may be anything: a proxy may have written it. */
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

/** Of an `error` event: the envelope that an answer would have had. */
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
    // Not ours; the status has to do.
    return { details: null };
  }
}

/** Where the specification gives the server a fixed message, the cause is in the details. */
function withReason(message: string, details: ErrorDetails | null): string {
  const reason = details?.['reason'];
  const isFixed = message === 'unauthorized' || message === 'orchestrator unreachable';
  return isFixed && typeof reason === 'string' ? `${message}: ${reason}` : message;
}

/** A code that this version does not know, or an answer of somebody between. */
function codeOfStatus(status: number): ErrorCode {
  if (status === 401) return 'invalid_api_key';
  if (status === 403) return 'forbidden';
  if (status === 404) return 'not_found';
  if (status === 429) return 'rate_limited';
  if (status === 502 || status === 503 || status === 504) return 'unavailable';
  return status < 500 ? 'invalid_request' : 'internal';
}
