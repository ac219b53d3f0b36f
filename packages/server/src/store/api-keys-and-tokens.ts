import { createHash, randomBytes, randomUUID } from 'node:crypto';
import { newestFirst } from './page-request.ts';
import type { Database } from './database.ts';
import { rememberUntilChange } from './change-stamp.ts';
import { prepareLookup } from './prepare-lookup.ts';
import { toOrganization, type OrganizationRecord } from './organizations.ts';
import { toUser, type UserRecord } from './users.ts';

export const API_KEY_PREFIX = 'svc_';
export const TOKEN_PREFIX = 'svc_pat_';

const SECRET_BYTES = 32;
const SUFFIX_LENGTH = 8;

export type CredentialTable = 'api_keys' | 'tokens';

/** A new credential. `secret` is returned once and not stored. */
export interface IssuedCredential {
  readonly id: string;
  readonly secret: string;
  readonly suffix: string;
  readonly createdAt: string;
}

export interface NewCredential {
  readonly name: string;
  readonly createdBy: string | null;
  /** Null: never. */
  readonly expiresAt: string | null;
}

export async function createApiKey(
  db: Database,
  organizationId: string,
  credential: NewCredential,
): Promise<IssuedCredential> {
  const { issued, row } = issue(API_KEY_PREFIX, credential);
  await db
    .insertInto('api_keys')
    .values({ ...row, organization_id: organizationId })
    .execute();
  return issued;
}

export async function createToken(
  db: Database,
  userId: string,
  credential: NewCredential,
): Promise<IssuedCredential> {
  const { issued, row } = issue(TOKEN_PREFIX, credential);
  await db
    .insertInto('tokens')
    .values({ ...row, user_id: userId })
    .execute();
  return issued;
}

export interface ApiKeyRecord {
  readonly id: string;
  readonly name: string;
  /** Null: created by the operator. */
  readonly createdBy: string | null;
  readonly organization: OrganizationRecord;
  readonly lastUsedAt: string | null;
  /** Null: never. */
  readonly expiresAt: string | null;
}

/** The key and its organization; undefined when it does not exist, was revoked or has expired. */
export async function findApiKey(db: Database, secret: string): Promise<ApiKeyRecord | undefined> {
  const key = await readApiKey(db, hashSecret(secret));
  return key === undefined || isPast(key.expiresAt) ? undefined : key;
}

/** Cached, because every authenticated request reads it. */
const readApiKey = rememberUntilChange(async (db, hash): Promise<ApiKeyRecord | undefined> => {
  const row = await selectApiKey(db, { hash });
  if (row === undefined) return undefined;
  return {
    id: row.key_id,
    name: row.key_name,
    createdBy: row.created_by,
    organization: toOrganization(row),
    lastUsedAt: row.last_used_at,
    expiresAt: row.expires_at,
  };
});

const selectApiKey = prepareLookup(['hash'], (db, { hash }) =>
  db
    .selectFrom('api_keys')
    .innerJoin('organizations', 'organizations.id', 'api_keys.organization_id')
    .selectAll('organizations')
    .select([
      'api_keys.id as key_id',
      'api_keys.name as key_name',
      'api_keys.created_by',
      'api_keys.expires_at',
      'api_keys.last_used_at',
    ])
    .where('api_keys.hash', '=', hash)
    .where('api_keys.revoked_at', 'is', null)
    .where('organizations.deleted_at', 'is', null),
);

/** Of an organization, without its secret; undefined when it does not exist, was revoked or has expired. */
export async function findApiKeyById(
  db: Database,
  organizationId: string,
  id: string,
): Promise<Pick<ApiKeyRecord, 'id' | 'name' | 'createdBy'> | undefined> {
  const row = await db
    .selectFrom('api_keys')
    .select(['id', 'name', 'created_by as createdBy', 'expires_at as expiresAt'])
    .where('id', '=', id)
    .where('organization_id', '=', organizationId)
    .where('revoked_at', 'is', null)
    .executeTakeFirst();
  return row === undefined || isPast(row.expiresAt) ? undefined : row;
}

/** The token's user; undefined when it does not exist, was revoked or has expired. */
export async function findToken(
  db: Database,
  secret: string,
): Promise<
  { readonly id: string; readonly user: UserRecord; readonly lastUsedAt: string | null } | undefined
> {
  const row = await selectToken(db, { hash: hashSecret(secret) });
  if (row === undefined || isPast(row.expires_at)) return undefined;
  return { id: row.token_id, user: toUser(row), lastUsedAt: row.last_used_at };
}

const selectToken = prepareLookup(['hash'], (db, { hash }) =>
  db
    .selectFrom('tokens')
    .innerJoin('users', 'users.id', 'tokens.user_id')
    .selectAll('users')
    .select(['tokens.id as token_id', 'tokens.expires_at', 'tokens.last_used_at'])
    .where('tokens.hash', '=', hash)
    .where('tokens.revoked_at', 'is', null),
);

/** Records the time of the last use. */
export async function touchCredentials(
  db: Database,
  table: CredentialTable,
  ids: readonly string[],
  at: string,
): Promise<void> {
  await db
    .updateTable(table)
    .set({ last_used_at: at })
    .where('id', 'in', [...ids])
    .execute();
}

/** The stored part of a credential: everything but the secret. */
export interface CredentialRecord {
  readonly id: string;
  readonly name: string;
  /** The last 8 characters of the secret. */
  readonly suffix: string;
  /** A user's id; null: created with the CLI on the server. */
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

/**
 * Keys that were not revoked, newest first, one more than `limit` when there are more. `createdBy` null: keys of all
 * users.
 */
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
  return await newestFirst(query, ['created_at', 'id'], page).execute();
}

/**
 * Counts credentials that are neither revoked nor expired. `owner` is an organization for API keys, a user for
 * tokens; `createdBy` null: created by any user.
 */
export async function countCredentials(
  db: Database,
  table: CredentialTable,
  owner: string,
  createdBy: string | null = null,
): Promise<number> {
  // This column is the only difference between the two tables.
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

/** Newest first. Some may have expired. */
export async function listActiveApiKeyIds(
  db: Database,
  organizationId: string,
  limit: number,
): Promise<readonly string[]> {
  const query = db
    .selectFrom('api_keys')
    .select(['id', 'created_at'])
    .where('organization_id', '=', organizationId)
    .where('revoked_at', 'is', null);
  const rows = await newestFirst(query, ['created_at', 'id'], { limit, after: null }).execute();
  return rows.map(({ id }) => id);
}

/** Tokens that were not revoked, newest first. */
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

/**
 * Revokes the key permanently. `createdBy` null: created by any user.
 * @returns undefined when the key does not exist, or was revoked before
 */
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

/**
 * Revokes the token permanently. @returns undefined when the user has no token with this id, or it was revoked before
 */
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

/** A plain hash is enough: the secret has 256 random bits and cannot be guessed. */
export function hashSecret(secret: string): string {
  return createHash('sha256').update(secret).digest('hex');
}

function issue(prefix: string, { name, createdBy, expiresAt }: NewCredential) {
  // The secret is hexadecimal, so an API key never starts with the prefix of a token.
  const secret = prefix + randomBytes(SECRET_BYTES).toString('hex');
  const suffix = secret.slice(-SUFFIX_LENGTH);
  const id = randomUUID();
  const createdAt = new Date().toISOString();
  const row = {
    id,
    name,
    hash: hashSecret(secret),
    suffix,
    created_by: createdBy,
    created_at: createdAt,
    expires_at: expiresAt,
    revoked_at: null,
    last_used_at: null,
  };
  return { issued: { id, secret, suffix, createdAt }, row };
}

function isPast(expiresAt: string | null): boolean {
  return expiresAt !== null && Date.parse(expiresAt) <= Date.now();
}
