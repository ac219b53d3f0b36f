import { ChannelError, ExecFailed, FileFailed, PlatformError } from '@svc/contract';
import { E2bRefusal } from './e2b-failure.ts';

/** Codes of the Connect protocol, each with the HTTP status of a call that is not a stream. */
export const CONNECT_STATUS = {
  canceled: 499,
  unknown: 500,
  invalid_argument: 400,
  deadline_exceeded: 504,
  not_found: 404,
  already_exists: 409,
  permission_denied: 403,
  resource_exhausted: 429,
  failed_precondition: 400,
  unimplemented: 501,
  internal: 500,
  unavailable: 503,
  unauthenticated: 401,
} as const;

export type ConnectCode = keyof typeof CONNECT_STATUS;

/** A failure in the words of the Connect protocol (https://connectrpc.com/docs/protocol). */
export class ConnectError extends Error {
  readonly code: ConnectCode;

  constructor(code: ConnectCode, message: string, options: ErrorOptions = {}) {
    super(message, options);
    this.code = code;
  }
}

const CODE_OF_PLATFORM: Readonly<Record<string, ConnectCode>> = {
  invalid_request: 'invalid_argument',
  forbidden: 'permission_denied',
  not_found: 'not_found',
  process_not_found: 'not_found',
  name_already_exists: 'already_exists',
  disk_full: 'resource_exhausted',
  payload_too_large: 'resource_exhausted',
  quota_exceeded: 'resource_exhausted',
  rate_limited: 'resource_exhausted',
  exec_failed: 'invalid_argument',
  exec_timeout: 'deadline_exceeded',
  unavailable: 'unavailable',
  orchestrator_unreachable: 'unavailable',
  sandbox_not_running: 'unavailable',
};

/** The failure as the caller is told it; undefined for a bug. */
export function toConnectError(error: unknown): ConnectError | undefined {
  if (error instanceof ConnectError) return error;
  if (error instanceof E2bRefusal) return undefined;
  if (error instanceof FileFailed) return of(error.platformCode, error.message, error);
  if (error instanceof ExecFailed)
    return new ConnectError('invalid_argument', error.message, { cause: error });
  if (error instanceof ChannelError) {
    const code = error.kind === 'refused' ? 'failed_precondition' : 'unavailable';
    return new ConnectError(code, error.message, { cause: error });
  }
  return PlatformError.is(error) ? of(error.code, error.message, error) : undefined;
}

function of(platformCode: string, message: string, cause: unknown): ConnectError {
  return new ConnectError(CODE_OF_PLATFORM[platformCode] ?? 'internal', message, { cause });
}
