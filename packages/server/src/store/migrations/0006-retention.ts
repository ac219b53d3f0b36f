import type { Kysely } from 'kysely';
import type { Migration } from 'kysely/migration';

/** Where the event chain of an organization starts after the oldest events were removed. */
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
