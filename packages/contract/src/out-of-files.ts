import { isCausedByErrno } from './errno.ts';
import { PlatformError } from './errors.ts';

/**
 * A process that may open no more files can hardly do anything until it has closed some, so such a failure is `unavailable` in every
 * operation. Any other error is returned as it is.
 */
export function unavailableIfOutOfFiles(error: unknown): unknown {
  if (PlatformError.is(error, 'unavailable') || !isCausedByErrno(error, 'EMFILE', 'ENFILE')) return error;
  return new PlatformError(
    'unavailable',
    'The host lets this service open no more files at the moment; try again in a few seconds',
    { cause: error },
  );
}
