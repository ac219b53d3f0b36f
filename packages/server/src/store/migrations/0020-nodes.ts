import type { Kysely } from 'kysely';
import type { Migration } from 'kysely/migration';

/** The node that a sandbox is placed on; null: not placed yet, or there is only one. */
export const nodes: Migration = { up };

async function up(db: Kysely<unknown>): Promise<void> {
  await db.schema.alterTable('sandboxes').addColumn('node', 'text').execute();
}
