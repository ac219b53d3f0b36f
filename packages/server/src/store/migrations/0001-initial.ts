import { sql, type Kysely } from 'kysely';
import type { Migration } from 'kysely/migration';

export const initial: Migration = { up };

async function up(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('organizations')
    .addColumn('id', 'text', (column) => column.primaryKey())
    .addColumn('slug', 'text', (column) => column.notNull().unique())
    .addColumn('created_at', 'text', (column) => column.notNull())
    .execute();
  await createSandboxes(db);
  await createRuns(db);
  await db.schema
    .createTable('keys')
    .addColumn('id', 'text', (column) => column.primaryKey())
    .addColumn('fingerprint', 'text', (column) => column.notNull().unique())
    .addColumn('namespace', 'text', (column) => column.notNull())
    .addColumn('created_at', 'text', (column) => column.notNull())
    .addColumn('expires_at', 'text')
    .execute();
}

async function createSandboxes(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('sandboxes')
    .addColumn('id', 'text', (column) => column.primaryKey())
    .addColumn('organization_id', 'text', (column) => column.notNull().references('organizations.id'))
    .addColumn('name', 'text', (column) => column.notNull())
    .addColumn('spec', 'text', (column) => column.notNull())
    .addColumn('ports', 'text', (column) => column.notNull())
    .addColumn('desired', 'text', (column) => column.notNull())
    .addColumn('observed', 'text', (column) => column.notNull())
    .addColumn('failure_message', 'text')
    .addColumn('created_at', 'text', (column) => column.notNull())
    .addColumn('started_at', 'text')
    .addColumn('ended_at', 'text')
    .addColumn('removed_at', 'text')
    .execute();
  // The name of a removed sandbox can be used again.
  await sql`create unique index sandboxes_name on sandboxes (organization_id, name) where removed_at is null`.execute(
    db,
  );
}

async function createRuns(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('runs')
    .addColumn('id', 'text', (column) => column.primaryKey())
    .addColumn('sandbox_id', 'text', (column) => column.notNull().references('sandboxes.id'))
    .addColumn('vcpus', 'integer', (column) => column.notNull())
    .addColumn('memory_mib', 'integer', (column) => column.notNull())
    .addColumn('disk_mib', 'integer', (column) => column.notNull())
    .addColumn('started_at', 'text', (column) => column.notNull())
    .addColumn('ended_at', 'text')
    .addColumn('end_reason', 'text')
    .execute();
  // The same run may be reported more than once; a sandbox runs at most once at a time.
  await sql`create unique index runs_started on runs (sandbox_id, started_at)`.execute(db);
  await sql`create unique index runs_open on runs (sandbox_id) where ended_at is null`.execute(db);
}
