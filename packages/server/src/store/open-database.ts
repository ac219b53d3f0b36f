import { join } from 'node:path';
import type { Logger } from 'pino';
import type { Database } from './database.ts';
import { openStore } from './open-store.ts';
import type { OF_MIGRATIONS, postgresDialect } from './postgres.ts';
import { sqliteDialect } from './sqlite.ts';

/** Null: the built-in store, in the server's folder. */
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

/** Most servers use SQLite and do without the driver. To be called before root is dropped: it may be unreadable later. */
export async function loadPostgres(): Promise<{
  readonly postgresDialect: typeof postgresDialect;
  readonly OF_MIGRATIONS: typeof OF_MIGRATIONS;
}> {
  return await import('./postgres.ts');
}
