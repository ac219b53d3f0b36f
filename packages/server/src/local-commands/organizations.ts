import { PlatformError } from '@svc/contract';
import { checkRestInput, ORGANIZATION_SLUG_PATTERN } from '@svc/contract/rest';
import type { Database } from '../store/database.ts';
import { countMembers, listMembers } from '../store/members.ts';
import {
  createOrganization,
  findOrganization,
  listOrganizations,
  putMember,
  updateOrganization,
  type OrganizationRecord,
} from '../store/organizations.ts';
import { countSandboxesByOrganization } from '../store/sandboxes.ts';
import { ensureUser } from '../store/users.ts';
import { changeStore, recordFromCli, withStore, type StorePlace } from './local-store.ts';

const SLUG = new RegExp(ORGANIZATION_SLUG_PATTERN);

export interface OrganizationSummary extends OrganizationRecord {
  readonly members: number;
  readonly sandboxes: number;
}

/**
 * Adds an organization, with this user as its owner. One that was made as a namespace and has no members yet may be taken over.
 * @throws PlatformError `name_already_exists`
 */
export async function createLocalOrganization(
  place: StorePlace,
  request: { readonly slug: string; readonly name?: string | undefined; readonly owner?: string | undefined },
): Promise<OrganizationRecord> {
  const { slug, name = slug, owner } = request;
  if (owner !== undefined) checkRestInput('invites.create', 'body', { email: owner });
  return await changeStore(place, async (transaction) => {
    const organization = (await takeOver(transaction, slug, name)) ?? (await create(transaction, slug, name));
    const user = owner === undefined ? undefined : await ensureUser(transaction, owner);
    if (user !== undefined) await putMember(transaction, organization.id, user.id, 'owner');
    const payload = { slug, name, ...(user === undefined ? {} : { owner_id: user.id }) };
    await recordFromCli(transaction, {
      organizationId: organization.id,
      type: 'org_created',
      category: 'org',
      payload,
    });
    return organization;
  });
}

/** By slug. */
export async function listLocalOrganizations(place: StorePlace): Promise<readonly OrganizationSummary[]> {
  return await withStore(place, async (database) => {
    const members = await countMembers(database);
    const sandboxes = await countSandboxesByOrganization(database);
    return (await listOrganizations(database)).map((organization) => ({
      ...organization,
      members: members.get(organization.id) ?? 0,
      sandboxes: sandboxes.get(organization.id) ?? 0,
    }));
  });
}

async function takeOver(
  transaction: Database,
  slug: string,
  name: string,
): Promise<OrganizationRecord | undefined> {
  const found = await findOrganization(transaction, slug);
  if (found === undefined) return undefined;
  const members = await listMembers(transaction, found.id, { limit: 1, after: null });
  return members.length === 0 ? await updateOrganization(transaction, found.id, { name }) : undefined;
}

/** The operator may use namespaces of keys as slugs too. */
async function create(transaction: Database, slug: string, name: string): Promise<OrganizationRecord> {
  if (!SLUG.test(slug)) {
    const rule = '1–63 lowercase letters, digits and single hyphens';
    throw new PlatformError('invalid_request', `'${slug}' is no name for an organization: use ${rule}`);
  }
  checkRestInput('organizations.create', 'body', { slug, name });
  if ((await findOrganization(transaction, slug)) === undefined) {
    return await createOrganization(transaction, { slug, name });
  }
  const message = `There is an organization '${slug}' with members already; see \`svc org ls\``;
  throw new PlatformError('name_already_exists', message);
}
