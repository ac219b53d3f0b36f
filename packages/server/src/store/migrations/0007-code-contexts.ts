import { sql, type Kysely } from 'kysely';
import type { Migration } from 'kysely/migration';

/** Code contexts, which every server of the store can use. */
export const codeContexts: Migration = { up };

async function up(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('code_contexts')
    .addColumn('id', 'text', (column) => column.primaryKey())
    .addColumn('sandbox_id', 'text', (column) => column.notNull().references('sandboxes.id'))
    .addColumn('run_id', 'text', (column) => column.notNull().references('runs.id'))
    .addColumn('name', 'text')
    .addColumn('language', 'text', (column) => column.notNull())
    .addColumn('cwd', 'text')
    .addColumn('env', 'text')
    .addColumn('created_at', 'text', (column) => column.notNull())
    .execute();
  await sql`create unique index code_contexts_name on code_contexts (run_id, name)`.execute(db);
  await db.schema
    .createTable('code_turns')
    .addColumn('id', 'text', (column) => column.primaryKey())
    .addColumn('context_id', 'text', (column) =>
      column.notNull().references('code_contexts.id').onDelete('cascade'),
    )
    .addColumn('leased_until', 'text', (column) => column.notNull())
    .addColumn('is_interrupted', 'integer', (column) => column.notNull())
    .execute();
  await sql`create index code_turns_context on code_turns (context_id)`.execute(db);
}
