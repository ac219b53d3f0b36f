import { Socket } from 'node:net';
import { PlatformError } from '@svc/contract/errors';
import { PostgresDialect, type Dialect, type PostgresPool, type PostgresPoolClient } from 'kysely';
import type { Logger } from 'pino';
import pg from 'pg';
import { StatementNames } from './statement-names.ts';
import { isGivenUp, isOutage, isOutdatedPlan } from './transient-failure.ts';

const MAX_CONNECTIONS = 10;
const KEEP_ALIVE_MS = 10_000;
/** How long closing waits for the database to say goodbye. */
const CLOSE_TIMEOUT_MS = 2000;
/** A transaction whose server has gone without a word gives its locks back after this. */
const IDLE_TRANSACTION_MS = 30_000;

interface PostgresLimits {
  /** For a new connection, and for a free one. */
  readonly connectMs: number;
  /** The database gives up what waits for a lock, or takes, longer. */
  readonly lockMs: number;
  readonly statementMs: number;
  /** A database that has not answered by then hangs: its connection is closed. */
  readonly answerMs: number;
}

/** A request that finds the database hanging is answered within 10 s: `connectMs` and `answerMs` together. */
const OF_REQUESTS: PostgresLimits = { connectMs: 3000, lockMs: 5000, statementMs: 6000, answerMs: 6500 };
/** Changing a table takes as long as the table is large, and other servers wait for the one that does it. */
export const OF_MIGRATIONS: PostgresLimits = {
  ...OF_REQUESTS,
  lockMs: 600_000,
  statementMs: 600_000,
  answerMs: 605_000,
};

export function postgresDialect(url: string, logger: Logger, limits = OF_REQUESTS): Dialect {
  const sockets = new Set<Socket>();
  const pool = new pg.Pool({
    connectionString: url,
    max: MAX_CONNECTIONS,
    connectionTimeoutMillis: limits.connectMs,
    lock_timeout: limits.lockMs,
    statement_timeout: limits.statementMs,
    query_timeout: limits.answerMs,
    idle_in_transaction_session_timeout: IDLE_TRANSACTION_MS,
    keepAlive: true,
    keepAliveInitialDelayMillis: KEEP_ALIVE_MS,
    application_name: 'svc-server',
    stream: () => {
      const socket = new Socket();
      sockets.add(socket);
      return socket.once('close', () => sockets.delete(socket));
    },
  });
  // An idle connection that breaks is replaced by the pool; without a listener it would end the process.
  pool.on('error', (error) => logger.warn({ err: error }, 'a database connection broke'));
  return new PostgresDialect({ pool: prepareStatements(pool, () => closePool(pool, sockets)) });
}

/** Each connection parses and plans a statement once, and not at every use. */
function prepareStatements(pool: pg.Pool, end: () => Promise<void>): PostgresPool {
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
    end,
    options: pool.options,
  };
}

/** A database that hangs does not keep the server from ending. */
async function closePool(pool: pg.Pool, sockets: ReadonlySet<Socket>): Promise<void> {
  const timer = setTimeout(() => sockets.forEach((socket) => socket.destroy()), CLOSE_TIMEOUT_MS);
  await pool.end();
  clearTimeout(timer);
}

function prepareClient(client: pg.PoolClient, names: StatementNames): PostgresPoolClient {
  const send = async (text: string, values: readonly unknown[]): Promise<unknown> => {
    const name = names.nameOf(text, values.length);
    return await client.query({ text, values: [...values], ...(name === undefined ? {} : { name }) });
  };
  let hasBroken = false;
  const query = async (text: string, values: readonly unknown[]): Promise<unknown> => {
    // A rollback on a connection that hangs would wait as long again.
    if (hasBroken) throw unreachable();
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
  if (isGivenUp(error)) {
    const message = 'The database took too long, or another change stands in the way; try again in a moment';
    throw new PlatformError('unavailable', message, { cause: error });
  }
  throw isOutage(error) ? unreachable(error) : error;
}

function unreachable(cause?: unknown): PlatformError {
  return new PlatformError('unavailable', 'The database does not answer; try again in a moment', { cause });
}
