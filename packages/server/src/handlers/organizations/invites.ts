import { PlatformError } from '@svc/contract';
import type { Role } from '@svc/contract/rest';
import type { Database } from '../../store/database.ts';
import {
  countOtherInvites,
  findInvite,
  listInvites,
  putInvite,
  removeInvite,
  type InviteRecord,
} from '../../store/invites.ts';
import { lockLivingOrganization } from '../../store/lock-organization.ts';
import { findMember, findMemberByEmail } from '../../store/members.ts';
import { putMember, type OrganizationRecord } from '../../store/organizations.ts';
import { MAX_INVITES, requireFewer } from '../../accounting/caps.ts';
import { findUser } from '../../store/users.ts';
import { requireRole } from './member-roles.ts';
import { viewWithRole } from './organizations.ts';
import { requireUser } from '../../dispatch/require-user.ts';
import type { RestCall } from '../../dispatch/rest-call.ts';
import type { RestHandlers } from '../../dispatch/rest-handlers.ts';

export function inviteHandlers(
  database: Database,
): Pick<RestHandlers, Extract<keyof RestHandlers, `invites.${string}`>> {
  return {
    'invites.list': async (_input, { organization }) =>
      (await listInvites(database, organization.id)).map(viewInvite),
    'invites.create': async ({ body: { email, role = 'member' } }, call) => await invite(email, role, call),
    'invites.remove': async ({ params }, call) => {
      const answer = () => ({ message: 'The invite is withdrawn' });
      await call.commit(async ({ db, record }) => {
        const removed = await removeInvite(db, call.organization.id, params.invite_id.toLowerCase());
        if (removed === undefined) throw new PlatformError('not_found', 'There is no such invite');
        const payload = { invite_id: removed.id, email: removed.email };
        await record({ type: 'invite_withdrawn', category: 'member', payload });
      }, answer);
      return answer();
    },
    'invites.get': async ({ params }) => await inspect(database, params.token),
    'invites.accept': async ({ params }, call) => await accept(params.token, call),
    'invites.decline': async ({ params }, call) => {
      const answer = () => ({ message: 'The invite is declined' });
      await call.commit(async ({ db, record }) => {
        const found = await takeInvite(db, params.token, call);
        const payload = { invite_id: found.invite.id, user_id: requireUser(call).id };
        await record({ type: 'invite_declined', category: 'member', payload }, found.organization.id);
      }, answer);
      return answer();
    },
  };
}

async function invite(email: string, role: Role, call: RestCall) {
  requireRole(call, role);
  const invitedBy = requireUser(call).id;
  const view = ({ token, ...record }: InviteRecord & { readonly token: string }) => ({
    ...viewInvite(record),
    token,
  });
  const made = await call.commit(async ({ db, record }) => {
    if ((await findMemberByEmail(db, call.organization.id, email)) !== undefined) {
      const message = 'The person with this address is a member already';
      throw new PlatformError('invalid_request', message, { isConflict: true, details: { field: 'email' } });
    }
    requireFewer('max_invites', await countOtherInvites(db, call.organization.id, email), MAX_INVITES);
    const put = await putInvite(db, call.organization.id, { email, role, invitedBy });
    const payload = { invite_id: put.id, email: put.email, role };
    await record({ type: 'member_invited', category: 'member', payload });
    return put;
  }, view);
  return view(made);
}

async function inspect(database: Database, token: string) {
  const found = await findInvite(database, token);
  if (found === undefined) throw noInvite();
  await requireInviter(database, found);
  const { invite, organization } = found;
  const inviter = await findUser(database, invite.invitedBy);
  if (inviter === undefined) throw noInvite();
  return {
    organization: { slug: organization.slug, name: organization.name },
    invited_by: { display_name: inviter.displayName, email: inviter.email },
    email: invite.email,
    role: invite.role,
    expires_at: invite.expiresAt,
  };
}

async function accept(token: string, call: RestCall) {
  const { id: userId } = requireUser(call);
  const view = (joined: { readonly organization: OrganizationRecord; readonly role: Role }) =>
    viewWithRole(joined.organization, joined.role);
  const joined = await call.commit(async ({ db, record }) => {
    const taken = await takeInvite(db, token, call);
    await requireInviter(db, taken);
    const {
      invite: { id, role },
      organization,
    } = taken;
    const payload = { invite_id: id, user_id: userId, role };
    await record({ type: 'member_joined', category: 'member', payload }, organization.id);
    const member = await findMember(db, organization.id, userId);
    if (member === undefined) await putMember(db, organization.id, userId, role);
    return { organization, role: member?.role ?? role };
  }, view);
  return view(joined);
}

interface FoundInvite {
  readonly invite: InviteRecord;
  readonly organization: OrganizationRecord;
}

/** Uses up an invite; only the invited person may. */
async function takeInvite(db: Database, token: string, call: RestCall): Promise<FoundInvite> {
  const found = await findInvite(db, token);
  if (found === undefined) throw noInvite();
  if (found.invite.email !== requireUser(call).email) {
    throw new PlatformError('forbidden', 'This invite is for another e-mail address than yours');
  }
  // Locks the organization first, like every other change of it, which prevents deadlocks.
  await lockLivingOrganization(db, found.organization.id);
  // Of two parallel requests that found it only one removes it.
  if ((await removeInvite(db, found.organization.id, found.invite.id)) === undefined) throw noInvite();
  return found;
}

/** The inviter must still have the right: invites of a removed member are void. */
async function requireInviter(
  db: Database,
  { invite: { invitedBy, role }, organization }: FoundInvite,
): Promise<void> {
  const inviter = await findMember(db, organization.id, invitedBy);
  const isAllowed = inviter?.role === 'owner' || (inviter?.role === 'admin' && role !== 'owner');
  if (!isAllowed) throw noInvite();
}

function noInvite(): PlatformError {
  const message = 'The invite is not valid or has expired; ask for a new one';
  return new PlatformError('invalid_request', message, { details: { field: 'token' } });
}

function viewInvite(record: InviteRecord) {
  return {
    id: record.id,
    email: record.email,
    role: record.role,
    invited_by: record.invitedBy,
    created_at: record.createdAt,
    expires_at: record.expiresAt,
  };
}
