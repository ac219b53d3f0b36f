import { sql, type Kysely } from 'kysely';
import type { Migration } from 'kysely/migration';

/** Access to a sandbox beside the API: SSH keys and preview tokens. */
export const access: Migration = { up };

async function up(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('ssh_keys')
    .addColumn('id', 'text', (column) => column.primaryKey())
    .addColumn('user_id', 'text', (column) => column.notNull().references('users.id'))
    .addColumn('name', 'text', (column) => column.notNull())
    .addColumn('public_key', 'text', (column) => column.notNull())
    .addColumn('fingerprint', 'text', (column) => column.notNull())
    .addColumn('created_at', 'text', (column) => column.notNull())
    .addColumn('last_used_at', 'text')
    .execute();
  // Two users may have the same key, because possession of a public key proves nothing.
  await sql`create unique index ssh_keys_user on ssh_keys (user_id, fingerprint)`.execute(db);
  await sql`create index ssh_keys_fingerprint on ssh_keys (fingerprint)`.execute(db);
  await db.schema
    .createTable('preview_tokens')
    .addColumn('id', 'text', (column) => column.primaryKey())
    .addColumn('organization_id', 'text', (column) => column.notNull().references('organizations.id'))
    .addColumn('sandbox_id', 'text', (column) => column.notNull().references('sandboxes.id'))
    .addColumn('port', 'integer', (column) => column.notNull())
    .addColumn('hash', 'text', (column) => column.notNull().unique())
    .addColumn('suffix', 'text', (column) => column.notNull())
    .addColumn('created_at', 'text', (column) => column.notNull())
    .addColumn('expires_at', 'text')
    .addColumn('revoked_at', 'text')
    .execute();
  await sql`create index preview_tokens_sandbox on preview_tokens (sandbox_id, created_at, id)`.execute(db);
}
