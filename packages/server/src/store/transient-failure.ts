const SERIALIZATION_FAILURE = '40001';
const DEADLOCK = '40P01';
const NOT_SUPPORTED = '0A000';

/** Whether PostgreSQL aborted a transaction that would succeed when retried. */
export function isTransient(error: unknown): boolean {
  const code = codeOf(error);
  return code === SERIALIZATION_FAILURE || code === DEADLOCK || isOutdatedPlan(error);
}

/** A newer server has changed a table since the statement was prepared, during a rolling update. */
export function isOutdatedPlan(error: unknown): boolean {
  // PostgreSQL has no specific code for it.
  return (
    codeOf(error) === NOT_SUPPORTED && (error as Error).message.startsWith('cached plan must not change')
  );
}

/** PostgreSQL restarts, is unreachable, or has no connection left; the query itself is fine. */
const OUTAGE = /^(08|57P0|53300$|25P03$)/;
/** Errors of the driver, which have no code. */
const NO_CONNECTION = /^(timeout exceeded when trying to connect|Connection terminated|Query read timeout)/;

/** Whether the database was unreachable or went away. */
export function isOutage(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const code = codeOf(error);
  return (
    'syscall' in error || (typeof code === 'string' && OUTAGE.test(code)) || NO_CONNECTION.test(error.message)
  );
}

const QUERY_CANCELED = '57014';
const LOCK_NOT_AVAILABLE = '55P03';

/** Whether the database cancelled a statement at one of our timeouts; its connection is still usable. */
export function isGivenUp(error: unknown): boolean {
  const code = codeOf(error);
  return code === QUERY_CANCELED || code === LOCK_NOT_AVAILABLE;
}

function codeOf(error: unknown): unknown {
  return error instanceof Error && 'code' in error ? error.code : undefined;
}
