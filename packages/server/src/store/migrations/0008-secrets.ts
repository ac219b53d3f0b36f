import { sql, type Kysely } from 'kysely';
import type { Migration } from 'kysely/migration';

/** Secrets of organizations, and which sandboxes have not received a new value yet. */
export const secrets: Migration = { up };

async function up(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('secrets')
    .addColumn('id', 'text', (column) => column.primaryKey())
    .addColumn('organization_id', 'text', (column) => column.notNull().references('organizations.id'))
    .addColumn('name', 'text', (column) => column.notNull())
    .addColumn('value', 'text', (column) => column.notNull())
    .addColumn('allowed_hosts', 'text', (column) => column.notNull())
    .addColumn('upstream_ca_cert', 'text', (column) => column.notNull())
    .addColumn('created_at', 'text', (column) => column.notNull())
    .addColumn('updated_at', 'text', (column) => column.notNull())
    .execute();
  await sql`create unique index secrets_name on secrets (organization_id, name)`.execute(db);
  await db.schema.alterTable('sandboxes').addColumn('values_due', 'text').execute();
}
