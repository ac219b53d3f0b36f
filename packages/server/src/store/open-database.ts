import { join } from 'node:path';
import type { Logger } from 'pino';
import type { Database } from './database.ts';
import { openStore } from './open-store.ts';
import type { OF_MIGRATIONS, postgresDialect } from './postgres.ts';
import { sqliteDialect } from './sqlite.ts';

/** Null: the built-in store in the server's folder. */
export interface StorePlace {
  readonly databaseUrl: string | null;
  readonly serverFolder: string;
}

/** The store that the configuration names. */
export async function openDatabase(
  { databaseUrl, serverFolder }: StorePlace,
  logger: Logger,
): Promise<Database> {
  if (databaseUrl === null) return await openStore(sqliteDialect(join(serverFolder, 'store.db')));
  const postgres = await loadPostgres();
  return await openStore(postgres.postgresDialect(databaseUrl, logger), () =>
    postgres.postgresDialect(databaseUrl, logger, postgres.OF_MIGRATIONS),
  );
}

/**
 * Loads the driver on demand, because most servers use SQLite. Call it before root is dropped: the driver's files may
 * be unreadable afterwards.
 */
export async function loadPostgres(): Promise<{
  readonly postgresDialect: typeof postgresDialect;
  readonly OF_MIGRATIONS: typeof OF_MIGRATIONS;
}> {
  return await import('./postgres.ts');
}
