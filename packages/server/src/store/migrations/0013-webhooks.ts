import { sql, type Kysely } from 'kysely';
import type { Migration } from 'kysely/migration';

/** Webhooks of organizations, and the queue of their deliveries. */
export const webhooks: Migration = { up };

async function up(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('webhooks')
    .addColumn('id', 'text', (column) => column.primaryKey())
    .addColumn('organization_id', 'text', (column) => column.notNull().references('organizations.id'))
    .addColumn('url', 'text', (column) => column.notNull())
    .addColumn('description', 'text', (column) => column.notNull())
    .addColumn('event_types', 'text', (column) => column.notNull())
    .addColumn('is_enabled', 'integer', (column) => column.notNull())
    .addColumn('disabled_reason', 'text')
    .addColumn('secret', 'text', (column) => column.notNull())
    .addColumn('previous_secret', 'text')
    .addColumn('previous_secret_until', 'text')
    .addColumn('failing_since', 'text')
    .addColumn('failures', 'integer', (column) => column.notNull())
    .addColumn('created_at', 'text', (column) => column.notNull())
    .addColumn('updated_at', 'text', (column) => column.notNull())
    .execute();
  await sql`create index webhooks_organization on webhooks (organization_id)`.execute(db);
  // No foreign key to the webhook: deliveries of a removed webhook are deleted later, in batches.
  await db.schema
    .createTable('webhook_deliveries')
    .addColumn('id', 'text', (column) => column.primaryKey())
    .addColumn('webhook_id', 'text', (column) => column.notNull())
    .addColumn('event_id', 'text')
    .addColumn('event_type', 'text', (column) => column.notNull())
    .addColumn('body', 'text', (column) => column.notNull())
    .addColumn('status', 'text', (column) => column.notNull())
    .addColumn('attempts', 'text', (column) => column.notNull())
    .addColumn('attempts_left', 'integer', (column) => column.notNull())
    .addColumn('next_attempt_at', 'text')
    .addColumn('claimed_by', 'text')
    .addColumn('claimed_until', 'text')
    .addColumn('created_at', 'text', (column) => column.notNull())
    .execute();
  await sql`create index webhook_deliveries_log on webhook_deliveries (webhook_id, created_at, id)`.execute(
    db,
  );
  await sql`create index webhook_deliveries_age on webhook_deliveries (created_at)`.execute(db);
  await sql`create index webhook_deliveries_due on webhook_deliveries (webhook_id, next_attempt_at) where status = 'pending'`.execute(
    db,
  );
}
