import type { Database } from './database.ts';

export interface Failures {
  readonly count: number;
  readonly lastAt: string;
}

/** How often it was tried in vain since it last went well; undefined: never. */
export async function findFailures(db: Database, subject: string): Promise<Failures | undefined> {
  return await db
    .selectFrom('sign_in_failures')
    .select(['count', 'last_at as lastAt'])
    .where('subject', '=', subject)
    .executeTakeFirst();
}

/** One more; what lies longer back than `before` is forgiven. */
export async function noteFailure(db: Database, subject: string, before: string): Promise<void> {
  const now = new Date().toISOString();
  await db
    .deleteFrom('sign_in_failures')
    .where('subject', '=', subject)
    .where('last_at', '<', before)
    .execute();
  await db
    .insertInto('sign_in_failures')
    .values({ subject, count: 1, last_at: now })
    .onConflict((conflict) =>
      conflict.column('subject').doUpdateSet((build) => ({
        count: build('sign_in_failures.count', '+', 1),
        last_at: now,
      })),
    )
    .execute();
}

export async function forgiveFailures(db: Database, subject: string): Promise<void> {
  await db.deleteFrom('sign_in_failures').where('subject', '=', subject).execute();
}

export async function takeFailureBack(db: Database, subject: string): Promise<void> {
  await db
    .updateTable('sign_in_failures')
    .set((build) => ({ count: build('count', '-', 1) }))
    .where('subject', '=', subject)
    .where('count', '>', 0)
    .execute();
}
