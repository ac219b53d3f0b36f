import type { Database } from './database.ts';

export interface Failures {
  readonly count: number;
  readonly lastAt: string;
}

export interface FailureRule {
  /** So many may fail before anybody has to wait. */
  readonly free: number;
  /** How long then: the first element after the first of those failures, the last one for all later. */
  readonly waitsMs: readonly number[];
  /** For so long failures count. */
  readonly rememberedMs: number;
}

/** How often it was tried in vain since it last went well; undefined: never. */
export async function findFailures(db: Database, subject: string): Promise<Failures | undefined> {
  return await db
    .selectFrom('sign_in_failures')
    .select(['count', 'last_at as lastAt'])
    .where('subject', '=', subject)
    .executeTakeFirst();
}

/**
 * Counts one more failure unless it is too early for one, in one statement: of many who come at once, through however many servers,
 * no more are let through than the rule says. @returns whether it was counted
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
