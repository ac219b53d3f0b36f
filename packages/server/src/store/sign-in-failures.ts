import type { Database } from './database.ts';

export interface Failures {
  readonly count: number;
  readonly lastAt: string;
}

export interface FailureRule {
  /** The number of failures without a wait. */
  readonly free: number;
  /** Waits after further failures: the first element after the first of them, the last element for all later ones. */
  readonly waitsMs: readonly number[];
  /** How long failures are counted. */
  readonly rememberedMs: number;
}

/** Failed attempts since the last success; undefined: none. */
export async function findFailures(db: Database, subject: string): Promise<Failures | undefined> {
  return await db
    .selectFrom('sign_in_failures')
    .select(['count', 'last_at as lastAt'])
    .where('subject', '=', subject)
    .executeTakeFirst();
}

/**
 * Counts a failure unless it comes before the end of the wait, in one statement: of many concurrent attempts, on any
 * number of servers, no more are admitted than the rule allows. @returns whether it was counted
 */
export async function noteFailure(
  db: Database,
  subject: string,
  { free, waitsMs, rememberedMs }: FailureRule,
): Promise<boolean> {
  const now = Date.now();
  const last_at = new Date(now).toISOString();
  const ago = (ms: number) => new Date(now - ms).toISOString();
  const counted = await db
    .insertInto('sign_in_failures')
    .values({ subject, count: 1, last_at })
    .onConflict((conflict) =>
      conflict
        .column('subject')
        .doUpdateSet((build) => ({
          count: build
            .case()
            .when('sign_in_failures.last_at', '<', ago(rememberedMs))
            .then(1)
            .else(build('sign_in_failures.count', '+', 1))
            .end(),
          last_at,
        }))
        .where((build) =>
          build.or([
            build('sign_in_failures.count', '<', free),
            build('sign_in_failures.last_at', '<', ago(rememberedMs)),
            ...waitsMs.map((waitMs, index) =>
              build.and([
                build('sign_in_failures.count', index === waitsMs.length - 1 ? '>=' : '=', free + index),
                build('sign_in_failures.last_at', '<=', ago(waitMs)),
              ]),
            ),
          ]),
        ),
    )
    .returning('count')
    .executeTakeFirst();
  return counted !== undefined;
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
