import { PostgresDialect, type Dialect, type PostgresPool, type PostgresPoolClient } from 'kysely';
import type { Logger } from 'pino';
import pg from 'pg';
import { StatementNames } from './statement-names.ts';
import { isOutdatedPlan } from './transient-failure.ts';

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
      const client = await pool.connect();
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
  const query = async (text: string, values: readonly unknown[]): Promise<unknown> => {
    try {
      return await send(text, values);
    } catch (error) {
      if (!isOutdatedPlan(error)) throw error;
      names.renew();
      // In a transaction what came before is lost too; whoever began it repeats it.
      if (client.getTransactionStatus() !== 'I') throw error;
      return await send(text, values);
    }
  };
  return {
    // The query builder asks for whole results only: it was given no cursor.
    query: query as PostgresPoolClient['query'],
    release: (isBroken) => client.release(isBroken),
  };
}
