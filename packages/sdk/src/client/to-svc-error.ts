import { ChannelError, ExecFailed, FileFailed, type ChannelErrorKind } from '@svc/contract/channel';
import { SvcError, type SvcErrorCode } from '../svc-error.ts';

/** Converts any error to a SvcError, the only class that callers see. */
export function toSvcError(error: unknown): SvcError {
  if (error instanceof SvcError) return error;
  if (error instanceof FileFailed) return ofFile(error);
  if (error instanceof ExecFailed) {
    const details = { kind: error.kind, errno: error.errnoName };
    return new SvcError('exec_failed', error.message, { details, cause: error });
  }
  if (error instanceof ChannelError) {
    // The cause of a closed connection may be a SvcError: an abort, a refusal.
    if (error.cause instanceof SvcError) return error.cause;
    return new SvcError(CODE_OF_KIND[error.kind], error.message, { cause: error });
  }
  const message = error instanceof Error ? error.message : String(error);
  return new SvcError('connection_failed', message, { cause: error });
}

const CODE_OF_KIND = {
  closed: 'connection_failed',
  timeout: 'timeout',
  protocol: 'internal',
  refused: 'invalid_request',
  unsupported: 'invalid_request',
} as const satisfies Record<ChannelErrorKind, SvcErrorCode>;

function ofFile(error: FileFailed): SvcError {
  return new SvcError(error.platformCode, error.message, {
    details: { errno: error.errnoName },
    cause: error,
  });
}
