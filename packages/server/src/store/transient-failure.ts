const SERIALIZATION_FAILURE = '40001';
const DEADLOCK = '40P01';
const NOT_SUPPORTED = '0A000';

/** Whether PostgreSQL gave up a transaction that would go through if it were tried again. */
export function isTransient(error: unknown): boolean {
  const code = codeOf(error);
  return code === SERIALIZATION_FAILURE || code === DEADLOCK || isOutdatedPlan(error);
}

/** Another server has changed a table since the statement was prepared, while servers are being replaced by newer ones. */
export function isOutdatedPlan(error: unknown): boolean {
  // PostgreSQL has no code of its own for it.
  return (
    codeOf(error) === NOT_SUPPORTED && (error as Error).message.startsWith('cached plan must not change')
  );
}

/** PostgreSQL restarts, is out of reach, or has no connection left: nothing is wrong with what was asked. */
const OUTAGE = /^(08|57P0|53300$|25P03$)/;
/** What the driver says without a code. */
const NO_CONNECTION = /^(timeout exceeded when trying to connect|Connection terminated|Query read timeout)/;

/** Whether the database itself could not be reached, or went away. */
export function isOutage(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const code = codeOf(error);
  return (
    'syscall' in error || (typeof code === 'string' && OUTAGE.test(code)) || NO_CONNECTION.test(error.message)
  );
}

const QUERY_CANCELED = '57014';
const LOCK_NOT_AVAILABLE = '55P03';

/** Whether the database ended a statement at one of our time limits; its connection is as good as before. */
export function isGivenUp(error: unknown): boolean {
  const code = codeOf(error);
  return code === QUERY_CANCELED || code === LOCK_NOT_AVAILABLE;
}

function codeOf(error: unknown): unknown {
  return error instanceof Error && 'code' in error ? error.code : undefined;
}
