import type { Kysely } from 'kysely';
import type { Migration } from 'kysely/migration';

/** Where the chain of an organization's events begins, after the oldest were removed. */
export const retention: Migration = { up };

async function up(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .alterTable('organizations')
    .addColumn('pruned_sequence', 'bigint', (column) => column.notNull().defaultTo(0))
    .execute();
  await db.schema
    .alterTable('organizations')
    .addColumn('pruned_hash', 'text', (column) => column.notNull().defaultTo(''))
    .execute();
}
