import { isCausedByErrno } from './errno.ts';
import { PlatformError } from './errors.ts';

/**
 * Turns an error at the limit of open files into `unavailable`: until the process has closed some, nearly every operation fails.
 * Any other error is returned as it is.
 */
export function unavailableIfOutOfFiles(error: unknown): unknown {
  if (PlatformError.is(error, 'unavailable') || !isCausedByErrno(error, 'EMFILE', 'ENFILE')) return error;
  return new PlatformError(
    'unavailable',
    'The host lets this service open no more files at the moment; try again in a few seconds',
    { cause: error },
  );
}
