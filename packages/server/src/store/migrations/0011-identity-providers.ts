import { sql, type Kysely } from 'kysely';
import type { Migration } from 'kysely/migration';

/** Identity providers of organizations, their identities, and sessions that are limited to one organization. */
export const identityProviders: Migration = { up };

async function up(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('identity_providers')
    .addColumn('organization_id', 'text', (column) => column.primaryKey().references('organizations.id'))
    .addColumn('issuer', 'text', (column) => column.notNull())
    .addColumn('client_id', 'text', (column) => column.notNull())
    .addColumn('client_secret', 'text')
    .addColumn('email_domains', 'text', (column) => column.notNull())
    .addColumn('created_at', 'text', (column) => column.notNull())
    .addColumn('updated_at', 'text', (column) => column.notNull())
    .execute();
  await db.schema
    .createTable('provider_identities')
    .addColumn('organization_id', 'text', (column) => column.notNull().references('organizations.id'))
    .addColumn('issuer', 'text', (column) => column.notNull())
    .addColumn('subject', 'text', (column) => column.notNull())
    .addColumn('user_id', 'text', (column) => column.notNull().references('users.id'))
    .execute();
  await sql`create unique index provider_identities_subject on provider_identities (organization_id, issuer, subject)`.execute(
    db,
  );
  await sql`create index provider_identities_user on provider_identities (user_id)`.execute(db);
  await db.schema
    .alterTable('sessions')
    .addColumn('organization_id', 'text', (column) => column.references('organizations.id'))
    .execute();
}
