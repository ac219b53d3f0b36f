import { isErrno } from './errno.ts';
import { PlatformError } from './errors.ts';

/** Errors of errors of errors; the chain may be a circle. */
const MAX_DEPTH = 16;

/**
 * A process that may open no more files can hardly do anything until it has closed some, so such a failure is `unavailable` in every
 * operation. Any other error is returned as it is.
 */
export function unavailableIfOutOfFiles(error: unknown): unknown {
  if (PlatformError.is(error, 'unavailable') || !isOutOfFiles(error, MAX_DEPTH)) return error;
  return new PlatformError(
    'unavailable',
    'The host lets this service open no more files at the moment; try again in a few seconds',
    { cause: error },
  );
}

function isOutOfFiles(error: unknown, depth: number): boolean {
  if (!(error instanceof Error) || depth === 0) return false;
  if (isErrno(error, 'EMFILE', 'ENFILE') || ('errno' in error && error.errno === 'EMFILE')) return true;
  const causes = [error.cause];
  if (error instanceof SuppressedError) causes.push(error.error, error.suppressed);
  if (error instanceof AggregateError) causes.push(...(error.errors as readonly unknown[]));
  return causes.some((cause) => isOutOfFiles(cause, depth - 1));
}
