import { randomUUID } from 'node:crypto';
import { DEFAULT_NAMESPACE, PlatformError } from '@svc/contract';
import type { Role } from '@svc/contract/rest';
import type { Selectable } from 'kysely';
import type { Database, OrganizationRow } from './database.ts';
import { prepareLookup } from './prepare-lookup.ts';
import { isUniqueViolation } from './unique-violation.ts';

export interface OrganizationRecord {
  readonly id: string;
  /** Also the name of its namespace on the self-hosted surface. */
  readonly slug: string;
  readonly name: string;
  readonly plan: string;
  /** Overrides of its plan's limits. */
  readonly quotas: Readonly<Record<string, number | null>>;
  readonly isSuspended: boolean;
  readonly isMfaRequired: boolean;
  readonly createdAt: string;
  readonly updatedAt: string;
}

/** The id of the organization with this slug, which is created when missing. */
export async function ensureOrganization(db: Database, slug: string): Promise<string> {
  const found = await findOrganization(db, slug);
  if (found !== undefined) return found.id;
  await db
    .insertInto('organizations')
    .values({ id: randomUUID(), slug, created_at: new Date().toISOString() })
    // Another caller may have inserted it meanwhile.
    .onConflict((conflict) => conflict.column('slug').doNothing())
    .execute();
  const { id } = await db
    .selectFrom('organizations')
    .select('id')
    .where('slug', '=', slug)
    .executeTakeFirstOrThrow();
  return id;
}

/** @throws PlatformError `name_already_exists` */
export async function createOrganization(
  db: Database,
  { slug, name }: { readonly slug: string; readonly name: string },
): Promise<OrganizationRecord> {
  const row = await db
    .insertInto('organizations')
    .values({ id: randomUUID(), slug, name, created_at: new Date().toISOString() })
    .onConflict((conflict) => conflict.column('slug').doNothing())
    .returningAll()
    .executeTakeFirst();
  if (row === undefined) throw slugTaken(slug);
  return toOrganization(row);
}

export interface OrganizationChange {
  readonly slug?: string | undefined;
  readonly name?: string | undefined;
  readonly isMfaRequired?: boolean | undefined;
}

/** Changes only the given fields. @throws PlatformError `name_already_exists` */
export async function updateOrganization(
  db: Database,
  organizationId: string,
  { slug, name, isMfaRequired }: OrganizationChange,
): Promise<OrganizationRecord> {
  const row = await db
    .updateTable('organizations')
    .set({
      ...(slug === undefined ? {} : { slug }),
      ...(name === undefined ? {} : { name }),
      ...(isMfaRequired === undefined ? {} : { mfa_required: isMfaRequired ? 1 : 0 }),
      updated_at: new Date().toISOString(),
    })
    .where('id', '=', organizationId)
    .returningAll()
    .executeTakeFirstOrThrow()
    .catch((error: unknown) => {
      throw slug !== undefined && isUniqueViolation(error) ? slugTaken(slug) : error;
    });
  return toOrganization(row);
}

/** Finds an organization; deleted ones are not found. */
export async function findOrganization(db: Database, slug: string): Promise<OrganizationRecord | undefined> {
  const row = await selectBySlug(db, { slug });
  return row === undefined ? undefined : toOrganization(row);
}

const selectBySlug = prepareLookup(['slug'], (db, { slug }) =>
  db.selectFrom('organizations').selectAll().where('slug', '=', slug).where('deleted_at', 'is', null),
);

export async function findOrganizationById(
  db: Database,
  id: string,
): Promise<OrganizationRecord | undefined> {
  const row = await selectById(db, { id });
  return row === undefined ? undefined : toOrganization(row);
}

const selectById = prepareLookup(['id'], (db, { id }) =>
  db.selectFrom('organizations').selectAll().where('id', '=', id).where('deleted_at', 'is', null),
);

/** Finds the organization, or creates it. Undefined when it was deleted. */
export async function findOrMakeOrganization(
  db: Database,
  slug: string,
): Promise<OrganizationRecord | undefined> {
  const found = await findOrganization(db, slug);
  if (found !== undefined) return found;
  await ensureOrganization(db, slug);
  return await findOrganization(db, slug);
}

/** An organization and the user's role in it; undefined when it does not exist or the user is not a member. */
export async function findMembership(
  db: Database,
  slug: string,
  userId: string,
): Promise<{ readonly organization: OrganizationRecord; readonly role: Role } | undefined> {
  const row = await selectMembership(db, { slug, userId });
  // The cast holds: roles are written from the same closed list.
  return row === undefined ? undefined : { organization: toOrganization(row), role: row.role as Role };
}

const selectMembership = prepareLookup(['slug', 'userId'], (db, { slug, userId }) =>
  db
    .selectFrom('organizations')
    .innerJoin('members', 'members.organization_id', 'organizations.id')
    .selectAll('organizations')
    .select('members.role')
    .where('organizations.slug', '=', slug)
    .where('organizations.deleted_at', 'is', null)
    .where('members.user_id', '=', userId),
);

/** All organizations that were not deleted, by slug. */
export async function listOrganizations(db: Database): Promise<readonly OrganizationRecord[]> {
  const rows = await db
    .selectFrom('organizations')
    .selectAll()
    .where('deleted_at', 'is', null)
    .orderBy('slug')
    .execute();
  return rows.map(toOrganization);
}

export async function slugOf(db: Database, id: string): Promise<string | undefined> {
  const row = await db.selectFrom('organizations').select('slug').where('id', '=', id).executeTakeFirst();
  return row?.slug;
}

/** All organizations including deleted ones, by slug. */
export async function listOrganizationsEver(
  db: Database,
): Promise<readonly { readonly id: string; readonly slug: string }[]> {
  return await db.selectFrom('organizations').select(['id', 'slug']).orderBy('slug').execute();
}

/** The organizations of the user, by slug. */
export async function listMemberships(
  db: Database,
  userId: string,
): Promise<readonly { readonly organization: OrganizationRecord; readonly role: Role }[]> {
  const rows = await db
    .selectFrom('organizations')
    .innerJoin('members', 'members.organization_id', 'organizations.id')
    .selectAll('organizations')
    .select('members.role')
    .where('organizations.deleted_at', 'is', null)
    .where('members.user_id', '=', userId)
    .orderBy('organizations.slug')
    .execute();
  // The cast holds: roles are written from the same closed list.
  return rows.map((row) => ({ organization: toOrganization(row), role: row.role as Role }));
}

/** Makes the user a member with this role, or changes the role. */
export async function putMember(
  db: Database,
  organizationId: string,
  userId: string,
  role: Role,
): Promise<void> {
  await db
    .insertInto('members')
    .values({
      organization_id: organizationId,
      user_id: userId,
      role,
      created_at: new Date().toISOString(),
    })
    .onConflict((conflict) => conflict.columns(['organization_id', 'user_id']).doUpdateSet({ role }))
    .execute();
}

export function toOrganization(row: Selectable<OrganizationRow>): OrganizationRecord {
  return {
    id: row.id,
    slug: row.slug,
    name: row.name ?? row.slug,
    plan: row.plan,
    quotas: JSON.parse(row.quotas) as Readonly<Record<string, number | null>>,
    isSuspended: row.is_suspended !== 0,
    isMfaRequired: row.mfa_required !== 0,
    createdAt: row.created_at,
    updatedAt: row.updated_at ?? row.created_at,
  };
}

/**
 * Namespaces for which keys were issued, and the default namespace, belong to the operator.
 * @throws PlatformError `name_already_exists`
 */
export async function requireUnreservedSlug(db: Database, slug: string): Promise<void> {
  const key = await db.selectFrom('keys').select('id').where('namespace', '=', slug).executeTakeFirst();
  if (slug === DEFAULT_NAMESPACE || key !== undefined) throw slugTaken(slug);
}

function slugTaken(slug: string): PlatformError {
  const message = `The slug '${slug}' is taken; choose another one`;
  return new PlatformError('name_already_exists', message, { details: { field: 'slug', slug } });
}
