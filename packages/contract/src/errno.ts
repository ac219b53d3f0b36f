/** Whether the error is a system error with one of these codes, like `ENOENT`. */
export function isErrno(error: unknown, ...codes: readonly string[]): boolean {
  const code = errnoOf(error);
  return code !== undefined && codes.includes(code);
}

/** The code of a system error, like `ENOENT`; undefined when the error has none. */
export function errnoOf(error: unknown): string | undefined {
  const code: unknown = error instanceof Error && 'code' in error ? error.code : undefined;
  return typeof code === 'string' ? code : undefined;
}

/** Longest chain of causes that is followed; a chain may be circular. */
const MAX_DEPTH = 16;

/** The same for an error or the nearest of its causes; errors of `svc-host` have the code in `errno`. */
export function isCausedByErrno(error: unknown, ...codes: readonly string[]): boolean {
  return isCausedBy(error, codes, MAX_DEPTH);
}

function isCausedBy(error: unknown, codes: readonly string[], depth: number): boolean {
  if (!(error instanceof Error) || depth === 0) return false;
  if (isErrno(error, ...codes)) return true;
  if ('errno' in error && typeof error.errno === 'string' && codes.includes(error.errno)) return true;
  const causes = [error.cause];
  if (error instanceof SuppressedError) causes.push(error.error, error.suppressed);
  if (error instanceof AggregateError) causes.push(...(error.errors as readonly unknown[]));
  return causes.some((cause) => isCausedBy(cause, codes, depth - 1));
}
