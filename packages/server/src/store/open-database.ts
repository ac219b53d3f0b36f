import { join } from 'node:path';
import type { Logger } from 'pino';
import type { Database } from './database.ts';
import { openStore } from './open-store.ts';
import type { postgresDialect } from './postgres.ts';
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
  return await openStore(
    databaseUrl === null
      ? sqliteDialect(join(serverFolder, 'store.db'))
      : (await loadPostgres()).postgresDialect(databaseUrl, logger),
  );
}

/** Most servers use SQLite and do without the driver. To be called before root is dropped: it may be unreadable later. */
export async function loadPostgres(): Promise<{ readonly postgresDialect: typeof postgresDialect }> {
  return await import('./postgres.ts');
}
