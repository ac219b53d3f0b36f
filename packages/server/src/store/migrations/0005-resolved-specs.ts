import type { Kysely } from 'kysely';
import type { Migration } from 'kysely/migration';

/** Resolved specs, permission to mount host folders, and files to write to the disk before the first run. */
export const resolvedSpecs: Migration = { up };

async function up(db: Kysely<unknown>): Promise<void> {
  await db.schema.alterTable('sandboxes').addColumn('resolved', 'text').execute();
  await db.schema
    .alterTable('sandboxes')
    .addColumn('has_host_paths', 'integer', (column) => column.notNull().defaultTo(0))
    .execute();
  await db.schema
    .createTable('sandbox_patches')
    .addColumn('sandbox_id', 'text', (column) => column.primaryKey())
    .addColumn('patches', 'text', (column) => column.notNull())
    .execute();
}
