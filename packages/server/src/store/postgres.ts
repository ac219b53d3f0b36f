import { Socket } from 'node:net';
import { PlatformError } from '@svc/contract/errors';
import { PostgresDialect, type Dialect, type PostgresPool, type PostgresPoolClient } from 'kysely';
import type { Logger } from 'pino';
import pg from 'pg';
import { StatementNames } from './statement-names.ts';
import { isGivenUp, isOutage, isOutdatedPlan } from './transient-failure.ts';

const MAX_CONNECTIONS = 10;
const KEEP_ALIVE_MS = 10_000;
/** How long closing waits for the database to close its connections. */
const CLOSE_TIMEOUT_MS = 2000;
/** A transaction whose server has disappeared releases its locks after this. */
const IDLE_TRANSACTION_MS = 30_000;

interface PostgresLimits {
  /** Timeout for a new connection, and for a free one of the pool. */
  readonly connectMs: number;
  /** The database cancels a statement that waits for a lock, or runs, for longer. */
  readonly lockMs: number;
  readonly statementMs: number;
  /** A database that has not answered by then is considered hung: its connection is closed. */
  readonly answerMs: number;
}

/** A request to a hung database is answered within 10 s: `connectMs` and `answerMs` together. */
const OF_REQUESTS: PostgresLimits = { connectMs: 3000, lockMs: 5000, statementMs: 6000, answerMs: 6500 };
/** The duration of a migration depends on the size of the table, and other servers wait for the one that migrates. */
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
  // The pool replaces an idle connection that breaks; without a listener, the error would end the process.
  pool.on('error', (error) => logger.warn({ err: error }, 'a database connection broke'));
  return new PostgresDialect({ pool: prepareStatements(pool, () => closePool(pool, sockets)) });
}

/** Prepares statements, so that each connection parses and plans them once. */
function prepareStatements(pool: pg.Pool, end: () => Promise<void>): PostgresPool {
  const names = new StatementNames();
  // The query builder caches connection state under this object, so there is one per connection.
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

/** Closes the pool with a timeout, so that a hung database does not delay the shutdown. */
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
    // A rollback on a hung connection would wait as long again.
    if (hasBroken) throw unreachable();
    try {
      return await send(text, values);
    } catch (error) {
      hasBroken ||= isOutage(error);
      if (!isOutdatedPlan(error)) return rethrow(error);
      names.renew();
      // In a transaction, the statements before it are lost too; the caller of the transaction repeats it.
      if (client.getTransactionStatus() !== 'I') throw error;
      return await send(text, values);
    }
  };
  return {
    // The query builder has no cursor, so it requests complete results only.
    query: query as PostgresPoolClient['query'],
    // The driver may not know yet that the connection is closed, and would reuse it.
    release: (isBroken) => client.release(isBroken === true || hasBroken),
  };
}

/** Outages become `unavailable` errors, so that callers retry; they are not bugs of the server. */
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
