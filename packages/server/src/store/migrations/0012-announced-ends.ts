import type { Kysely } from 'kysely';
import type { Migration } from 'kysely/migration';

/** The scheduled end of a run that its organization was notified of. */
export const announcedEnds: Migration = { up };

async function up(db: Kysely<unknown>): Promise<void> {
  await db.schema.alterTable('sandboxes').addColumn('announced_end', 'text').execute();
}
