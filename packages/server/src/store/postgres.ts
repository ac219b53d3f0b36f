import { PostgresDialect, type Dialect } from 'kysely';
import type { Logger } from 'pino';
import pg from 'pg';

const MAX_CONNECTIONS = 10;
const CONNECT_TIMEOUT_MS = 5000;

export function postgresDialect(url: string, logger: Logger): Dialect {
  const pool = new pg.Pool({
    connectionString: url,
    max: MAX_CONNECTIONS,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    application_name: 'svc-server',
  });
  // An idle connection that breaks is replaced by the pool; without a listener it would end the process.
  pool.on('error', (error) => logger.warn({ err: error }, 'a database connection broke'));
  return new PostgresDialect({ pool });
}
