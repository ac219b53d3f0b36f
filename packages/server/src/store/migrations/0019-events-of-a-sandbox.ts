import { PostgresAdapter, sql, type Kysely } from 'kysely';
import type { Migration } from 'kysely/migration';

/** Index that finds the events of one sandbox, independent of the number of other events. */
export const eventsOfASandbox: Migration = { up };

async function up(db: Kysely<unknown>): Promise<void> {
  // Not a column: the subject of an event is in its payload, which the hash of the chain covers. Not a cast to JSON:
  // PostgreSQL refuses some payloads, for example those with a zero character.
  const sandbox =
    db.getExecutor().adapter instanceof PostgresAdapter
      ? sql`substring(payload from '"sandbox_id":"([0-9a-f-]{36})"')`
      : sql`json_extract(payload, '$.sandbox_id')`;
  await sql`create index events_sandbox on events (organization_id, (${sandbox}), sequence)`.execute(db);
}
