import { PlatformError } from '@svc/contract';
import { ROLES, type RestOperation, type Role } from '@svc/contract/rest';
import type { Database } from '../store/database.ts';
import type { Actor } from '../store/events.ts';
import {
  findMembership,
  findOrganization,
  listMemberships,
  type OrganizationRecord,
} from '../store/organizations.ts';
import { findSecondFactor } from '../store/second-factors.ts';
import type { SessionRecord } from '../store/sessions.ts';
import type { UserRecord } from '../store/users.ts';
import { unauthorized, type Principal } from './principal.ts';

/** The user and organization that a call acts for. `organization` is null where the operation has none. */
export interface Authority {
  readonly organization: OrganizationRecord | null;
  readonly user: UserRecord | null;
  readonly role: Role;
  readonly actor: Actor;
  /** Null: the caller has another credential than a session. */
  readonly session: SessionRecord | null;
  /** The caller owns this server and its host. */
  readonly isOperator: boolean;
  /** Why the caller may not act any more; an answer that was stored while they could is still repeated. */
  readonly refusal?: PlatformError;
}

/**
 * Decides whether the caller may run the operation, and on whose behalf. `slug` is the organization in the path, undefined on paths without one.
 * An organization that does not exist and one that the user does not belong to get the same answer.
 */
export async function authorize(
  database: Database,
  operation: Pick<RestOperation, 'role' | 'audience' | 'takesLimitedSession'>,
  slug: string | undefined,
  principal: Principal,
): Promise<Authority> {
  if (slug !== undefined) return await asMember(database, operation.role, slug, principal);
  if (operation.audience === 'user') return asPerson(principal, operation);
  if (principal.kind === 'user') throw await organizationMissing(database, principal.user);
  if (principal.kind === 'api_key') {
    const { organization, id, name, createdBy, isOperator } = principal;
    await requireMaker(database, operation.role, organization, createdBy);
    const actor: Actor = { kind: 'api_key', api_key_id: id, name };
    return { organization, user: null, session: null, role: 'owner', actor, isOperator };
  }
  const { organization, user } = principal;
  return { organization, user, session: null, role: 'owner', actor: actorOf(user), isOperator: true };
}

/** The credential is good; only where it is to act is missing. */
async function organizationMissing(database: Database, { id }: UserRecord): Promise<PlatformError> {
  const slugs = (await listMemberships(database, id)).map(({ organization: { slug } }) => slug);
  const yours = slugs.length === 0 ? 'you belong to none yet' : `yours: ${slugs.join(', ')}`;
  const reason = `A token of a user acts in an organization, and none was named (${yours}); name it by SVC_ORG, --org, the client's option organization, or as /v1/orgs/{slug} in the path`;
  return new PlatformError('invalid_api_key', 'unauthorized', {
    details: { missing: 'organization', yours: slugs, reason },
  });
}

/** Limits a key to the role of the member who created it: otherwise a member could gain an admin's rights with a new key. */
async function requireMaker(
  database: Database,
  least: Role,
  { slug }: OrganizationRecord,
  createdBy: string | null,
): Promise<void> {
  if (createdBy === null || least === 'member') return;
  const maker = await findMembership(database, slug, createdBy);
  if (maker !== undefined && ROLES.indexOf(maker.role) >= ROLES.indexOf(least)) return;
  const message = `This needs a key that was created by a member with the role ${least}`;
  throw new PlatformError('forbidden', message, { details: { needed: least } });
}

async function asMember(
  database: Database,
  least: Role,
  slug: string,
  principal: Principal,
): Promise<Authority> {
  if (principal.kind === 'api_key') throw unauthorized();
  const { user } = principal;
  const membership =
    principal.kind === 'developer'
      ? await asOwner(database, slug)
      : await findMembership(database, slug, user.id);
  if (membership === undefined && principal.kind === 'developer')
    throw new PlatformError('org_not_found', `There is no organization '${slug}'`);
  if (membership === undefined) {
    const message = `You are not a member of an organization '${slug}'`;
    throw new PlatformError('forbidden', message, { details: { organization: slug } });
  }
  const { organization, role } = membership;
  if (principal.kind === 'user') requireWithinLimit(principal.session, organization);
  if (ROLES.indexOf(role) < ROLES.indexOf(least)) {
    const message = `This takes the role ${least}; you are ${role} of '${slug}'`;
    throw new PlatformError('forbidden', message, { details: { role, needed: least } });
  }
  if (principal.kind === 'developer')
    return { organization, user, session: null, role, actor: actorOf(user), isOperator: true };
  if (organization.isMfaRequired) await requireSecondFactor(database, slug, principal);
  return { organization, user, session: principal.session, role, actor: actorOf(user), isOperator: false };
}

/** A session must have begun with a second factor. Tokens are used by programs: for these the user must have one set up. */
async function requireSecondFactor(
  database: Database,
  slug: string,
  { user, session }: Extract<Principal, { readonly kind: 'user' }>,
): Promise<void> {
  const hasIt = session?.hasSecondFactor ?? (await findSecondFactor(database, user.id))?.isConfirmed ?? false;
  if (hasIt) return;
  const remedy = session === null ? 'turn it on for your account' : 'turn it on and sign in with a code';
  const message = `'${slug}' is open only to people with a second factor; ${remedy}`;
  throw new PlatformError('forbidden', message, { details: { organization: slug, needed: 'second_factor' } });
}

/**
 * Limits a session to the organization whose identity provider signed the user in: the operator of the provider can sign in as any of
 * its users, and must not reach other organizations with that. `organization` is null for operations on the user's own account.
 */
function requireWithinLimit(session: SessionRecord | null, organization: OrganizationRecord | null): void {
  const limit = session?.organizationId ?? null;
  if (limit === null || limit === organization?.id) return;
  const message =
    'This session is limited to the organization whose identity provider signed you in; sign in with a password or a link';
  throw new PlatformError('forbidden', message, { details: { needed: 'session_without_limit' } });
}

/** In development mode every caller has the role of an owner in every organization. */
async function asOwner(
  database: Database,
  slug: string,
): Promise<{ readonly organization: OrganizationRecord; readonly role: Role } | undefined> {
  const organization = await findOrganization(database, slug);
  return organization && { organization, role: 'owner' };
}

export function asPerson(
  principal: Principal,
  operation: Pick<RestOperation, 'role' | 'takesLimitedSession'>,
): Authority {
  if (principal.kind === 'api_key') throw unauthorized();
  const { user } = principal;
  const isOperator = principal.kind === 'developer';
  const session = principal.kind === 'user' ? principal.session : null;
  if (operation.takesLimitedSession !== true) requireWithinLimit(session, null);
  return { organization: null, user, session, role: 'member', actor: actorOf(user), isOperator };
}

/** The authority of a request that signs in or up: no user is known yet. */
export const ANYONE: Authority = {
  organization: null,
  user: null,
  session: null,
  role: 'member',
  actor: { kind: 'system', code: 'sign_in', label: 'Sign-in page' },
  isOperator: false,
};

export function actorOf(user: UserRecord): Actor {
  return {
    kind: 'user',
    user_id: user.id,
    label: user.displayName ?? redact(user.email),
    redacted_email: redact(user.email),
  };
}

/** Enough to recognize an address by, too little to write to it. */
function redact(email: string): string {
  const [name = '', domain = ''] = email.split('@');
  return `${name.slice(0, 1)}***@${domain}`;
}
