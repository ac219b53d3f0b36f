import { Kysely, type Dialect } from 'kysely';
import { Migrator } from 'kysely/migration';
import { noteDialect } from './change-stamp.ts';
import type { Database, Tables } from './database.ts';
import { initial } from './migrations/0001-initial.ts';
import { controlPlane } from './migrations/0002-control-plane.ts';
import { access } from './migrations/0003-access.ts';

/** Forward only, in the order of their names. A migration that was released is never changed. */
const MIGRATIONS = { '0001-initial': initial, '0002-control-plane': controlPlane, '0003-access': access };

/** Opens the store and brings its tables up to date. Several processes may do so at once. */
export async function openStore(dialect: Dialect): Promise<Database> {
  const database: Database = new Kysely<Tables>({ dialect });
  noteDialect(database, dialect);
  try {
    const migrator = new Migrator({
      db: database,
      provider: { getMigrations: async () => await Promise.resolve(MIGRATIONS) },
    });
    const { error } = await migrator.migrateToLatest();
    if (error !== undefined) throw error;
    return database;
  } catch (error) {
    await database.destroy();
    throw error;
  }
}
