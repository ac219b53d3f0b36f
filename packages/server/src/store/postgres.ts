import { PlatformError } from '@svc/contract/errors';
import { PostgresDialect, type Dialect, type PostgresPool, type PostgresPoolClient } from 'kysely';
import type { Logger } from 'pino';
import pg from 'pg';
import { StatementNames } from './statement-names.ts';
import { isOutage, isOutdatedPlan } from './transient-failure.ts';

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
  return new PostgresDialect({ pool: prepareStatements(pool) });
}

/** Each connection parses and plans a statement once, and not at every use. */
function prepareStatements(pool: pg.Pool): PostgresPool {
  const names = new StatementNames();
  // The query builder keeps what it knows of a connection under this object, so there is one for each.
  const clients = new WeakMap<pg.PoolClient, PostgresPoolClient>();
  return {
    connect: async () => {
      const client = await pool.connect().catch(rethrow);
      let prepared = clients.get(client);
      if (prepared === undefined) clients.set(client, (prepared = prepareClient(client, names)));
      return prepared;
    },
    end: () => pool.end(),
    options: pool.options,
  };
}

function prepareClient(client: pg.PoolClient, names: StatementNames): PostgresPoolClient {
  const send = async (text: string, values: readonly unknown[]): Promise<unknown> => {
    const name = names.nameOf(text, values.length);
    return await client.query({ text, values: [...values], ...(name === undefined ? {} : { name }) });
  };
  let hasBroken = false;
  const query = async (text: string, values: readonly unknown[]): Promise<unknown> => {
    try {
      return await send(text, values);
    } catch (error) {
      hasBroken ||= isOutage(error);
      if (!isOutdatedPlan(error)) return rethrow(error);
      names.renew();
      // In a transaction what came before is lost too; whoever began it repeats it.
      if (client.getTransactionStatus() !== 'I') throw error;
      return await send(text, values);
    }
  };
  return {
    // The query builder asks for whole results only: it was given no cursor.
    query: query as PostgresPoolClient['query'],
    // The driver may not have seen yet that it is closed, and would give it to the next caller.
    release: (isBroken) => client.release(isBroken === true || hasBroken),
  };
}

/** Callers are told to try again, and not that the server met a bug. */
function rethrow(error: unknown): never {
  if (!isOutage(error)) throw error;
  throw new PlatformError('unavailable', 'The database cannot be reached; try again in a moment', {
    cause: error,
  });
}
