import type { Kysely } from 'kysely';
import type { Migration } from 'kysely/migration';

/** What a sandbox really has, whose folders of the host it may mount, and what is written to its disk before it first runs. */
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
