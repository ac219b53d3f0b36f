import { randomBytes, randomUUID } from 'node:crypto';
import type { Role } from '@svc/contract/rest';
import type { Selectable } from 'kysely';
import { hashSecret } from './api-keys-and-tokens.ts';
import type { Database, InviteRow } from './database.ts';
import { toOrganization, type OrganizationRecord } from './organizations.ts';

const TOKEN_BYTES = 32;
const VALID_MS = 7 * 24 * 60 * 60 * 1000;

export interface InviteRecord {
  readonly id: string;
  readonly email: string;
  readonly role: Role;
  readonly invitedBy: string;
  readonly createdAt: string;
  readonly expiresAt: string;
}

/** Creates an invite, and replaces an earlier one to the same address. `token` is not stored. */
export async function putInvite(
  db: Database,
  organizationId: string,
  invite: { readonly email: string; readonly role: Role; readonly invitedBy: string },
): Promise<InviteRecord & { readonly token: string }> {
  // Not base64url: a token that starts with `-` would be parsed as an option on a command line.
  const token = randomBytes(TOKEN_BYTES).toString('hex');
  const now = Date.now();
  const change = {
    role: invite.role,
    invited_by: invite.invitedBy,
    token_hash: hashSecret(token),
    created_at: new Date(now).toISOString(),
    expires_at: new Date(now + VALID_MS).toISOString(),
  };
  const row = await db
    .insertInto('invites')
    .values({
      ...change,
      id: randomUUID(),
      organization_id: organizationId,
      email: invite.email.toLowerCase(),
    })
    .onConflict((conflict) => conflict.columns(['organization_id', 'email']).doUpdateSet(change))
    .returningAll()
    .executeTakeFirstOrThrow();
  return { ...toInvite(row), token };
}

/** Counts the invites that have not expired, except the one to this address. */
export async function countOtherInvites(
  db: Database,
  organizationId: string,
  email: string,
): Promise<number> {
  const row = await db
    .selectFrom('invites')
    .select((build) => build.fn.countAll<number | string>().as('count'))
    .where('organization_id', '=', organizationId)
    .where('email', '!=', email.toLowerCase())
    .where('expires_at', '>', new Date().toISOString())
    .executeTakeFirstOrThrow();
  return Number(row.count);
}

/** Invites that have not expired, sorted by address. */
export async function listInvites(db: Database, organizationId: string): Promise<readonly InviteRecord[]> {
  const rows = await db
    .selectFrom('invites')
    .selectAll()
    .where('organization_id', '=', organizationId)
    .where('expires_at', '>', new Date().toISOString())
    .orderBy('email')
    .execute();
  return rows.map(toInvite);
}

/**
 * The invite of a token and its organization; undefined when it does not exist, was withdrawn, answered, or has
 * expired.
 */
export async function findInvite(
  db: Database,
  token: string,
): Promise<{ readonly invite: InviteRecord; readonly organization: OrganizationRecord } | undefined> {
  const row = await db
    .selectFrom('invites')
    .selectAll()
    .where('token_hash', '=', hashSecret(token))
    .where('expires_at', '>', new Date().toISOString())
    .executeTakeFirst();
  if (row === undefined) return undefined;
  const organization = await db
    .selectFrom('organizations')
    .selectAll()
    .where('id', '=', row.organization_id)
    .where('deleted_at', 'is', null)
    .executeTakeFirst();
  if (organization === undefined) return undefined;
  return { invite: toInvite(row), organization: toOrganization(organization) };
}

/** Consumes the invite to this address. @returns undefined: there is none, or it has expired */
export async function takeInviteTo(
  db: Database,
  organizationId: string,
  email: string,
): Promise<InviteRecord | undefined> {
  const row = await db
    .deleteFrom('invites')
    .where('organization_id', '=', organizationId)
    .where('email', '=', email.toLowerCase())
    .where('expires_at', '>', new Date().toISOString())
    .returningAll()
    .executeTakeFirst();
  return row === undefined ? undefined : toInvite(row);
}

/** @returns the removed invite; undefined when there was none */
export async function removeInvite(
  db: Database,
  organizationId: string,
  id: string,
): Promise<InviteRecord | undefined> {
  const row = await db
    .deleteFrom('invites')
    .where('organization_id', '=', organizationId)
    .where('id', '=', id)
    .returningAll()
    .executeTakeFirst();
  return row === undefined ? undefined : toInvite(row);
}

function toInvite(row: Selectable<InviteRow>): InviteRecord {
  return {
    id: row.id,
    email: row.email,
    // The cast holds: roles are written from the same closed list.
    role: row.role as Role,
    invitedBy: row.invited_by,
    createdAt: row.created_at,
    expiresAt: row.expires_at,
  };
}

/** Withdraws the pending invites that this user sent. @returns how many */
export async function removeInvitesOf(db: Database, organizationId: string, userId: string): Promise<number> {
  const { numDeletedRows } = await db
    .deleteFrom('invites')
    .where('organization_id', '=', organizationId)
    .where('invited_by', '=', userId)
    .executeTakeFirstOrThrow();
  return Number(numDeletedRows);
}
