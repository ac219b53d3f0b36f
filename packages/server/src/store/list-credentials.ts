import type { CredentialTable } from './credentials.ts';
import type { Database } from './database.ts';

/** What is known of a credential, which is everything but its secret. */
export interface CredentialRecord {
  readonly id: string;
  readonly name: string;
  /** The last 8 characters of the secret. */
  readonly suffix: string;
  /** A user's id; null: made on the command line of the server. */
  readonly createdBy: string | null;
  readonly createdAt: string;
  readonly expiresAt: string | null;
  readonly lastUsedAt: string | null;
}

const COLUMNS = [
  'id',
  'name',
  'suffix',
  'created_by as createdBy',
  'created_at as createdAt',
  'expires_at as expiresAt',
  'last_used_at as lastUsedAt',
] as const;

/** Those that were not revoked, newest first, one more than `limit` when there are more. `createdBy` null: anybody's. */
export async function listApiKeys(
  db: Database,
  organizationId: string,
  page: { readonly limit: number; readonly after: readonly (string | number)[] | null },
  createdBy: string | null = null,
): Promise<readonly CredentialRecord[]> {
  let query = db
    .selectFrom('api_keys')
    .select(COLUMNS)
    .where('organization_id', '=', organizationId)
    .where('revoked_at', 'is', null);
  if (createdBy !== null) query = query.where('created_by', '=', createdBy);
  if (page.after !== null) {
    const [createdAt, id] = page.after as readonly [string, string];
    query = query.where((build) =>
      build.or([
        build('created_at', '<', createdAt),
        build.and([build('created_at', '=', createdAt), build('id', '<', id)]),
      ]),
    );
  }
  return await query
    .orderBy('created_at', 'desc')
    .orderBy('id', 'desc')
    .limit(page.limit + 1)
    .execute();
}

/**
 * How many work: neither revoked nor expired. `owner` is an organization for API keys, a user for tokens; `createdBy`
 * null: anybody's.
 */
export async function countCredentials(
  db: Database,
  table: CredentialTable,
  owner: string,
  createdBy: string | null = null,
): Promise<number> {
  // The tables differ in this name alone.
  const ownerColumn = (table === 'api_keys' ? 'organization_id' : 'user_id') as 'organization_id';
  let query = db
    .selectFrom(table)
    .select((build) => build.fn.countAll<number | string>().as('count'))
    .where(ownerColumn, '=', owner)
    .where('revoked_at', 'is', null)
    .where((build) =>
      build.or([build('expires_at', 'is', null), build('expires_at', '>', new Date().toISOString())]),
    );
  if (createdBy !== null) query = query.where('created_by', '=', createdBy);
  return Number((await query.executeTakeFirstOrThrow()).count);
}

/** Those that were not revoked, newest first. */
export async function listTokens(db: Database, userId: string): Promise<readonly CredentialRecord[]> {
  return await db
    .selectFrom('tokens')
    .select(COLUMNS)
    .where('user_id', '=', userId)
    .where('revoked_at', 'is', null)
    .orderBy('created_at', 'desc')
    .orderBy('id', 'desc')
    .execute();
}

/** For good. `createdBy` null: whoever made it. @returns undefined when there is none, or it was revoked before */
export async function revokeApiKey(
  db: Database,
  organizationId: string,
  id: string,
  createdBy: string | null = null,
): Promise<CredentialRecord | undefined> {
  let query = db
    .updateTable('api_keys')
    .set({ revoked_at: new Date().toISOString() })
    .where('organization_id', '=', organizationId)
    .where('id', '=', id)
    .where('revoked_at', 'is', null);
  if (createdBy !== null) query = query.where('created_by', '=', createdBy);
  return await query.returning(COLUMNS).executeTakeFirst();
}

/** For good. @returns undefined when the user has none of this id, or it was revoked before */
export async function revokeToken(
  db: Database,
  userId: string,
  id: string,
): Promise<CredentialRecord | undefined> {
  return await db
    .updateTable('tokens')
    .set({ revoked_at: new Date().toISOString() })
    .where('user_id', '=', userId)
    .where('id', '=', id)
    .where('revoked_at', 'is', null)
    .returning(COLUMNS)
    .executeTakeFirst();
}
