import { badField } from '../../dispatch/rest-dispatch.ts';
import { PlatformError } from '@svc/contract';
import { SLUG_PATTERN, type Role } from '@svc/contract/rest';
import type { Database } from '../../store/database.ts';
import {
  createOrganization,
  listMemberships,
  listOrganizations,
  putMember,
  requireUnreservedSlug,
  updateOrganization,
  type OrganizationRecord,
} from '../../store/organizations.ts';
import { findSecondFactor } from '../../store/second-factors.ts';
import { isSlugFree, suggestSlug } from '../../store/slugs.ts';
import { checkOrganizationQuota } from '../../accounting/check-quotas.ts';
import { removeOrganization, type RemovalParts } from './remove-organization.ts';
import { requireUser } from '../../dispatch/require-user.ts';
import type { RestCall } from '../../dispatch/rest-call.ts';
import type { RestHandlers } from '../../dispatch/rest-handlers.ts';

const MAX_SLUG_LENGTH = 63;
const SANDBOX_SLUG = new RegExp(SLUG_PATTERN);

export function organizationHandlers(
  database: Database,
  parts: RemovalParts,
  maxOrganizationsPerUser: number | null,
): Pick<RestHandlers, Extract<keyof RestHandlers, `organizations.${string}`>> {
  return {
    'organizations.own': async (_input, { organization }) =>
      await Promise.resolve(viewWithRole(organization, 'owner')),
    'organizations.get': async (_input, { organization, role }) =>
      await Promise.resolve(viewWithRole(organization, role)),
    'organizations.list': async (_input, call) => {
      if (call.isOperator)
        return (await listOrganizations(database)).map((each) => viewWithRole(each, 'owner'));
      const memberships = await listMemberships(database, requireUser(call).id);
      const limit = call.session?.organizationId ?? null;
      const seen = memberships.filter(({ organization: { id } }) => limit === null || id === limit);
      return seen.map(({ organization, role }) => viewWithRole(organization, role));
    },
    'organizations.create': async ({ body }, call) => {
      const { id: userId } = requireUser(call);
      const slug = body.slug ?? slugOf(body.name);
      const made = await call.commit(async ({ db, record }) => {
        if (!call.isOperator) await checkOrganizationQuota(db, userId, maxOrganizationsPerUser);
        await requireUnreservedSlug(db, slug);
        const organization = await createOrganization(db, { slug, name: body.name });
        await putMember(db, organization.id, userId, 'owner');
        const payload = { name: body.name, slug };
        await record({ type: 'org_created', category: 'org', payload }, organization.id);
        return organization;
      }, viewOrganization);
      return viewOrganization(made);
    },
    'organizations.update': async ({ body }, call) => {
      const { name, slug, mfa_required: isMfaRequired } = body;
      if (isMfaRequired === true) await requireOwnSecondFactor(database, call);
      const changed = await call.commit(async ({ db, record }) => {
        if (slug !== undefined && slug !== call.organization.slug) await requireUnreservedSlug(db, slug);
        const organization = await updateOrganization(db, call.organization.id, {
          name,
          slug,
          isMfaRequired,
        });
        await record({ type: 'org_updated', category: 'org', payload: body });
        return organization;
      }, viewOrganization);
      return viewOrganization(changed);
    },
    'organizations.remove': async ({ body }, call) => await removeOrganization(parts, body.confirm, call),
    'organizations.checkSandboxSlug': async ({ query }) =>
      await checkSandboxSlug(database, query.sandbox_slug),
    'organizations.suggestSandboxSlug': async () => ({ sandbox_slug: await suggestSlug(database) }),
  };
}

/** Or they would shut themselves out with it. */
async function requireOwnSecondFactor(database: Database, call: RestCall): Promise<void> {
  const { id } = requireUser(call);
  if (call.isOperator || (await findSecondFactor(database, id))?.isConfirmed === true) return;
  throw badField('mfa_required', 'can be set to true by a user with a second factor; turn on yours first');
}

export function viewWithRole(organization: OrganizationRecord, role: Role) {
  return { ...viewOrganization(organization), role };
}

function viewOrganization(organization: OrganizationRecord) {
  return {
    id: organization.id,
    name: organization.name,
    slug: organization.slug,
    plan: organization.plan,
    mfa_required: organization.isMfaRequired,
    is_suspended: organization.isSuspended,
    created_at: organization.createdAt,
    updated_at: organization.updatedAt,
  };
}

/** A slug from a name that people chose. @throws PlatformError when nothing of the name can be in one */
function slugOf(name: string): string {
  const slug = name
    .normalize('NFKD')
    .replaceAll(/\p{M}/gu, '')
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '-')
    .slice(0, MAX_SLUG_LENGTH)
    .replaceAll(/^-|-$/g, '');
  if (slug !== '') return slug;
  const message = 'slug is required, as this name has no letters or digits to make one from';
  throw new PlatformError('invalid_request', message, { details: { field: 'slug' } });
}

async function checkSandboxSlug(database: Database, slug: string) {
  if (!SANDBOX_SLUG.test(slug)) {
    const reason = 'A slug has 3–63 lowercase letters, digits and single hyphens';
    return { sandbox_slug: slug, valid: false, available: false, reason };
  }
  const available = await isSlugFree(database, slug);
  return { sandbox_slug: slug, valid: true, available, reason: available ? null : 'A sandbox has this slug' };
}
