import { join } from 'node:path';
import type { Logger } from 'pino';
import type { ServerConfig } from '../config.ts';
import type { Database } from './database.ts';
import { openStore } from './open-store.ts';
import { postgresDialect } from './postgres.ts';
import { sqliteDialect } from './sqlite.ts';

/** The store that the configuration names. */
export async function openDatabase(
  config: Pick<ServerConfig, 'databaseUrl' | 'serverFolder'>,
  logger: Logger,
): Promise<Database> {
  const { databaseUrl, serverFolder } = config;
  return await openStore(
    databaseUrl === null
      ? sqliteDialect(join(serverFolder, 'store.db'))
      : postgresDialect(databaseUrl, logger),
  );
}
