import { PostgresAdapter, sql, type Kysely } from 'kysely';
import type { Migration } from 'kysely/migration';

/** Events are found by the sandbox that they are about, however many others there are. */
export const eventsOfASandbox: Migration = { up };

async function up(db: Kysely<unknown>): Promise<void> {
  // Not of a column: what an event is about stands in its payload, which the hash of the chain covers. PostgreSQL would refuse
  // to read some payloads as JSON, those with a zero character say.
  const sandbox =
    db.getExecutor().adapter instanceof PostgresAdapter
      ? sql`substring(payload from '"sandbox_id":"([0-9a-f-]{36})"')`
      : sql`json_extract(payload, '$.sandbox_id')`;
  await sql`create index events_sandbox on events (organization_id, (${sandbox}), sequence)`.execute(db);
}
