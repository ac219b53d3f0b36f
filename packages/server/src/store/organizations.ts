import { randomUUID } from 'node:crypto';
import type { Database } from './database.ts';

/** The id of the organization with this slug, which is made when it is missing. */
export async function ensureOrganization(db: Database, slug: string): Promise<string> {
  const found = await findOrganization(db, slug);
  if (found !== undefined) return found;
  await db
    .insertInto('organizations')
    .values({ id: randomUUID(), slug, created_at: new Date().toISOString() })
    // Another caller may have been faster.
    .onConflict((conflict) => conflict.column('slug').doNothing())
    .execute();
  const { id } = await db
    .selectFrom('organizations')
    .select('id')
    .where('slug', '=', slug)
    .executeTakeFirstOrThrow();
  return id;
}

async function findOrganization(db: Database, slug: string): Promise<string | undefined> {
  const row = await db.selectFrom('organizations').select('id').where('slug', '=', slug).executeTakeFirst();
  return row?.id;
}
