import type { Kysely } from 'kysely';
import type { Migration } from 'kysely/migration';

/** A link with which the first user of a server creates their account. */
export const ownerLinks: Migration = { up };

async function up(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('owner_links')
    .addColumn('hash', 'text', (column) => column.primaryKey())
    .addColumn('expires_at', 'text', (column) => column.notNull())
    .execute();
}
