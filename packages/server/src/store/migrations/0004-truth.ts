import { sql, type Kysely } from 'kysely';
import type { Migration } from 'kysely/migration';

/** Keeps usage and events correct when clocks are set, hosts go down and servers are killed. */
export const truth: Migration = { up };

async function up(db: Kysely<unknown>): Promise<void> {
  await followClocks(db);
  await db.schema
    .createTable('file_changes')
    .addColumn('id', 'text', (column) => column.primaryKey())
    .addColumn('event', 'text', (column) => column.notNull())
    .addColumn('leased_until', 'text', (column) => column.notNull())
    .execute();
}

async function followClocks(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('clocks')
    .addColumn('boot_id', 'text', (column) => column.primaryKey())
    .addColumn('offset_ms', 'bigint', (column) => column.notNull())
    .addColumn('seen_at', 'text', (column) => column.notNull())
    .execute();
  await db.schema.alterTable('runs').addColumn('boot_id', 'text').execute();
  await db.schema.alterTable('runs').addColumn('reported_start', 'text').execute();
  await sql`update runs set reported_start = started_at`.execute(db);
  // The start of a run moves with the clock; a run is identified by its reported start.
  await sql`drop index runs_started`.execute(db);
  await sql`create unique index runs_reported on runs (sandbox_id, reported_start)`.execute(db);
}
