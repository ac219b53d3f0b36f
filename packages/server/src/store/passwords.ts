import type { Database } from './database.ts';

/** The hash; undefined when the user has no password. */
export async function findPasswordHash(db: Database, userId: string): Promise<string | undefined> {
  const row = await db
    .selectFrom('passwords')
    .select('hash')
    .where('user_id', '=', userId)
    .executeTakeFirst();
  return row?.hash;
}

export async function putPasswordHash(db: Database, userId: string, hash: string): Promise<void> {
  const change = { hash, changed_at: new Date().toISOString() };
  await db
    .insertInto('passwords')
    .values({ user_id: userId, ...change })
    .onConflict((conflict) => conflict.column('user_id').doUpdateSet(change))
    .execute();
}
