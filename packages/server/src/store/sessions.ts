import { randomBytes, randomUUID } from 'node:crypto';
import type { Selectable } from 'kysely';
import { hashSecret } from './api-keys-and-tokens.ts';
import type { SessionRow } from './account-rows.ts';
import type { Database } from './database.ts';
import { prepareLookup } from './prepare-lookup.ts';
import { toUser, type UserRecord } from './users.ts';

const LINK_BYTES = 32;

export interface SessionRecord {
  readonly id: string;
  readonly userId: string;
  /** The sign-in included a second factor. */
  readonly hasSecondFactor: boolean;
  /**
   * The only organization that the session may access, because its own identity provider vouched for the user; null:
   * not limited.
   */
  readonly organizationId: string | null;
  readonly userAgent: string;
  readonly sourceAddress: string | null;
  readonly createdAt: string;
  readonly expiresAt: string;
}

export type NewSession = Pick<
  SessionRecord,
  'userId' | 'hasSecondFactor' | 'organizationId' | 'userAgent' | 'sourceAddress' | 'expiresAt'
>;

export async function createSession(db: Database, session: NewSession): Promise<SessionRecord> {
  const row = await db
    .insertInto('sessions')
    .values({
      id: randomUUID(),
      user_id: session.userId,
      has_second_factor: session.hasSecondFactor ? 1 : 0,
      organization_id: session.organizationId,
      user_agent: session.userAgent,
      source_address: session.sourceAddress,
      created_at: new Date().toISOString(),
      expires_at: session.expiresAt,
    })
    .returningAll()
    .executeTakeFirstOrThrow();
  return toSession(row);
}

/** Finds a session; undefined when it was ended. */
export async function findSession(
  db: Database,
  id: string,
): Promise<{ readonly session: SessionRecord; readonly user: UserRecord } | undefined> {
  const row = await selectSession(db, { id });
  if (row === undefined || Date.parse(row.expires_at) <= Date.now()) return undefined;
  const session = toSession({ ...row, id: row.session_id, created_at: row.session_created_at });
  return { session, user: toUser(row) };
}

/** Prepared, because every request with a session reads it. */
const selectSession = prepareLookup(['id'], (db, { id }) =>
  db
    .selectFrom('sessions')
    .innerJoin('users', 'users.id', 'sessions.user_id')
    .selectAll('users')
    .select([
      'sessions.id as session_id',
      'sessions.user_id',
      'sessions.has_second_factor',
      'sessions.organization_id',
      'sessions.user_agent',
      'sessions.source_address',
      'sessions.created_at as session_created_at',
      'sessions.expires_at',
    ])
    .where('sessions.id', '=', id),
);

/** Sessions that have not expired, newest first. */
export async function listSessions(db: Database, userId: string): Promise<readonly SessionRecord[]> {
  const rows = await db
    .selectFrom('sessions')
    .selectAll()
    .where('user_id', '=', userId)
    .where('expires_at', '>', new Date().toISOString())
    .orderBy('created_at', 'desc')
    .orderBy('id', 'desc')
    .execute();
  return rows.map(toSession);
}

/** Ends all sessions of the user but `except`. @returns how many */
export async function endSessions(
  db: Database,
  userId: string,
  which: { readonly only?: string; readonly except?: string } = {},
): Promise<number> {
  let query = db.deleteFrom('sessions').where('user_id', '=', userId);
  if (which.only !== undefined) query = query.where('id', '=', which.only);
  if (which.except !== undefined) query = query.where('id', '!=', which.except);
  return Number((await query.executeTakeFirstOrThrow()).numDeletedRows);
}

/** Deletes expired sessions, links and failure counts. */
export async function forgetOldSignIns(db: Database, failuresBefore: string): Promise<void> {
  const now = new Date().toISOString();
  await db.deleteFrom('sessions').where('expires_at', '<', now).execute();
  await db.deleteFrom('sign_in_links').where('expires_at', '<', now).execute();
  await db.deleteFrom('owner_links').where('expires_at', '<', now).execute();
  await db.deleteFrom('sign_in_failures').where('last_at', '<', failuresBefore).execute();
}

/** Creates a secret that signs one user in, once. Invalidates the one before. */
export async function createSignInLink(db: Database, userId: string, expiresAt: string): Promise<string> {
  const secret = randomBytes(LINK_BYTES).toString('base64url');
  await db.deleteFrom('sign_in_links').where('user_id', '=', userId).execute();
  await db
    .insertInto('sign_in_links')
    .values({ hash: hashSecret(secret), user_id: userId, expires_at: expiresAt })
    .execute();
  return secret;
}

/** Reads the link without consuming it. @returns its user; undefined when it was used, has expired or does not exist */
export async function findSignInLink(
  db: Database,
  secret: string,
): Promise<{ readonly userId: string } | undefined> {
  return await db
    .selectFrom('sign_in_links')
    .select('user_id as userId')
    .where('hash', '=', hashSecret(secret))
    .where('expires_at', '>', new Date().toISOString())
    .executeTakeFirst();
}

/** Consumes the link. @returns its user; undefined when it was used, has expired or does not exist */
export async function takeSignInLink(
  db: Database,
  secret: string,
): Promise<{ readonly userId: string } | undefined> {
  const row = await db
    .deleteFrom('sign_in_links')
    .where('hash', '=', hashSecret(secret))
    .where('expires_at', '>', new Date().toISOString())
    .returning('user_id as userId')
    .executeTakeFirst();
  return row;
}

function toSession(row: Selectable<SessionRow>): SessionRecord {
  return {
    id: row.id,
    userId: row.user_id,
    hasSecondFactor: row.has_second_factor !== 0,
    organizationId: row.organization_id,
    userAgent: row.user_agent,
    sourceAddress: row.source_address,
    createdAt: row.created_at,
    expiresAt: row.expires_at,
  };
}
