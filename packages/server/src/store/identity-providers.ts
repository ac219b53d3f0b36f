import type { Selectable } from 'kysely';
import type { IdentityProviderRow } from './account-rows.ts';
import type { Database } from './database.ts';

export interface IdentityProviderRecord {
  readonly organizationId: string;
  readonly issuer: string;
  readonly clientId: string;
  /** Null: the provider needs no client secret. */
  readonly sealedClientSecret: string | null;
  readonly emailDomains: readonly string[];
  readonly createdAt: string;
  readonly updatedAt: string;
}

export function clientSecretContext(organizationId: string): string {
  return `identity-provider:${organizationId}`;
}

export async function findIdentityProvider(
  db: Database,
  organizationId: string,
): Promise<IdentityProviderRecord | undefined> {
  const row = await db
    .selectFrom('identity_providers')
    .selectAll()
    .where('organization_id', '=', organizationId)
    .executeTakeFirst();
  return row === undefined ? undefined : toProvider(row);
}

export async function putIdentityProvider(
  db: Database,
  provider: Omit<IdentityProviderRecord, 'createdAt' | 'updatedAt'>,
): Promise<IdentityProviderRecord> {
  const now = new Date().toISOString();
  const change = {
    issuer: provider.issuer,
    client_id: provider.clientId,
    client_secret: provider.sealedClientSecret,
    email_domains: JSON.stringify(provider.emailDomains),
    updated_at: now,
  };
  const row = await db
    .insertInto('identity_providers')
    .values({ ...change, organization_id: provider.organizationId, created_at: now })
    .onConflict((conflict) => conflict.column('organization_id').doUpdateSet(change))
    .returningAll()
    .executeTakeFirstOrThrow();
  return toProvider(row);
}

/** Removes the provider with its identities and the sessions that began there. @returns false when there was none */
export async function removeIdentityProvider(db: Database, organizationId: string): Promise<boolean> {
  await db.deleteFrom('provider_identities').where('organization_id', '=', organizationId).execute();
  await db.deleteFrom('sessions').where('organization_id', '=', organizationId).execute();
  const { numDeletedRows } = await db
    .deleteFrom('identity_providers')
    .where('organization_id', '=', organizationId)
    .executeTakeFirstOrThrow();
  return Number(numDeletedRows) > 0;
}

export interface ProviderIdentity {
  readonly organizationId: string;
  readonly issuer: string;
  readonly subject: string;
}

/** @returns the id of the user; undefined: no user is linked to this identity yet */
export async function findUserOfIdentity(
  db: Database,
  { organizationId, issuer, subject }: ProviderIdentity,
): Promise<string | undefined> {
  const row = await db
    .selectFrom('provider_identities')
    .select('user_id')
    .where('organization_id', '=', organizationId)
    .where('issuer', '=', issuer)
    .where('subject', '=', subject)
    .executeTakeFirst();
  return row?.user_id;
}

/** Call it in a transaction that has locked the organization. */
export async function putIdentity(
  db: Database,
  { organizationId, issuer, subject }: ProviderIdentity,
  userId: string,
): Promise<void> {
  const row = { organization_id: organizationId, issuer, subject, user_id: userId };
  await db.insertInto('provider_identities').values(row).execute();
}

function toProvider(row: Selectable<IdentityProviderRow>): IdentityProviderRecord {
  return {
    organizationId: row.organization_id,
    issuer: row.issuer,
    clientId: row.client_id,
    sealedClientSecret: row.client_secret,
    // Written by this file only.
    emailDomains: JSON.parse(row.email_domains) as readonly string[],
    createdAt: row.created_at,
    updatedAt: row.updated_at,
  };
}
