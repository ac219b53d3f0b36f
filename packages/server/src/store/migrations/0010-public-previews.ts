import type { Kysely } from 'kysely';
import type { Migration } from 'kysely/migration';

/** Previews that open without a token, until an optional expiry. */
export const publicPreviews: Migration = { up };

async function up(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .alterTable('preview_tokens')
    .addColumn('is_public', 'integer', (column) => column.notNull().defaultTo(0))
    .execute();
}
