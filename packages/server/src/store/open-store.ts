import { PlatformError } from '@svc/contract/errors';
import { Kysely, sql, type Dialect } from 'kysely';
import { DEFAULT_MIGRATION_TABLE, Migrator } from 'kysely/migration';
import type { Database, Tables } from './database.ts';
import { initial } from './migrations/0001-initial.ts';
import { controlPlane } from './migrations/0002-control-plane.ts';
import { access } from './migrations/0003-access.ts';
import { truth } from './migrations/0004-truth.ts';
import { resolvedSpecs } from './migrations/0005-resolved-specs.ts';
import { retention } from './migrations/0006-retention.ts';
import { codeContexts } from './migrations/0007-code-contexts.ts';
import { secrets } from './migrations/0008-secrets.ts';
import { accounts } from './migrations/0009-accounts.ts';
import { publicPreviews } from './migrations/0010-public-previews.ts';
import { identityProviders } from './migrations/0011-identity-providers.ts';
import { announcedEnds } from './migrations/0012-announced-ends.ts';
import { webhooks } from './migrations/0013-webhooks.ts';
import { ownerLinks } from './migrations/0016-owner-links.ts';
import { eventsOfASandbox } from './migrations/0019-events-of-a-sandbox.ts';
import { nodes } from './migrations/0020-nodes.ts';
import { noteDialect } from './store-dialect.ts';

/** Forward only, in the order of their names. A released migration is never changed. */
const MIGRATIONS = {
  '0001-initial': initial,
  '0002-control-plane': controlPlane,
  '0003-access': access,
  '0004-truth': truth,
  '0005-resolved-specs': resolvedSpecs,
  '0006-retention': retention,
  '0007-code-contexts': codeContexts,
  '0008-secrets': secrets,
  '0009-accounts': accounts,
  '0010-public-previews': publicPreviews,
  '0011-identity-providers': identityProviders,
  '0012-announced-ends': announcedEnds,
  '0013-webhooks': webhooks,
  '0016-owner-links': ownerLinks,
  '0019-events-of-a-sandbox': eventsOfASandbox,
  '0020-nodes': nodes,
};

/**
 * Opens the store and migrates its tables. Several processes may do so at once. `toMigrate` connects with the
 * timeouts that a migration needs; absent: `dialect` has none.
 */
export async function openStore(dialect: Dialect, toMigrate?: () => Dialect): Promise<Database> {
  const database: Database = new Kysely<Tables>({ dialect });
  noteDialect(database, dialect);
  try {
    if (!(await isUpToDate(database))) await migrate(database, toMigrate);
    return database;
  } catch (error) {
    await database.destroy();
    throw error;
  }
}

/**
 * A cheap check first, because the migrator describes every table to find this out. @throws when a later version has
 * migrated the store
 */
async function isUpToDate(database: Database): Promise<boolean> {
  const applied = await readApplied(database);
  const known = Object.keys(MIGRATIONS).toSorted();
  const later = applied.filter((name) => !known.includes(name));
  if (later.length > 0)
    throw new Error(
      `the store belongs to a newer svc (${later.join(', ')}): start that one, or put back the store of a backup from before it`,
    );
  return applied.join() === known.join();
}

async function readApplied(database: Database): Promise<readonly string[]> {
  const applied = sql<{ name: string }>`select name from ${sql.table(DEFAULT_MIGRATION_TABLE)} order by name`;
  try {
    return (await applied.execute(database)).rows.map(({ name }) => name);
  } catch (error) {
    if (PlatformError.is(error, 'unavailable')) throw error;
    // A new store has no such table. Any other error occurs in the migrator too, which reports it.
    return [];
  }
}

async function migrate(database: Database, toMigrate: (() => Dialect) | undefined): Promise<void> {
  if (toMigrate === undefined) return await migrateWith(database);
  const patient: Database = new Kysely<Tables>({ dialect: toMigrate() });
  try {
    await migrateWith(patient);
  } finally {
    await patient.destroy();
  }
}

async function migrateWith(database: Database): Promise<void> {
  const migrator = new Migrator({
    db: database,
    provider: { getMigrations: async () => await Promise.resolve(MIGRATIONS) },
  });
  const { error } = await migrator.migrateToLatest();
  if (error !== undefined) throw error;
}
