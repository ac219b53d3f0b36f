import { PlatformError } from '@svc/contract';
import type { Role } from '@svc/contract/rest';
import {
  findMember,
  hasOtherOwner,
  listMembers,
  removeMember,
  type MemberRecord,
} from '../../store/members.ts';
import type { Database } from '../../store/database.ts';
import { removeInvitesOf } from '../../store/invites.ts';
import { countCredentials } from '../../store/api-keys-and-tokens.ts';
import { putMember } from '../../store/organizations.ts';
import { inviteHandlers } from './invites.ts';
import { requireRole } from './member-roles.ts';
import { readPage, toPage } from '../../dispatch/paging.ts';
import { requireUser } from '../../dispatch/require-user.ts';
import type { RestCall } from '../../dispatch/rest-call.ts';
import type { RestHandlers } from '../../dispatch/rest-handlers.ts';

export function memberHandlers(
  database: Database,
): Pick<RestHandlers, Extract<keyof RestHandlers, `members.${string}` | `invites.${string}`>> {
  return {
    ...inviteHandlers(database),
    'members.list': async ({ query }, { organization }) => {
      const page = readPage(query, 'members', 2);
      const rows = await listMembers(database, organization.id, page);
      return toPage(rows, page, 'members', ({ joinedAt, userId }) => [joinedAt, userId], viewMember);
    },
    'members.update': async ({ params, body }, call) =>
      viewMember(await changeRole(params.user_id.toLowerCase(), body.role, call)),
    'members.remove': async ({ params }, call) => await remove(params.user_id.toLowerCase(), call),
  };
}

async function changeRole(userId: string, role: Role, call: RestCall): Promise<MemberRecord> {
  return await call.commit(async ({ db, record }) => {
    const member = await findManaged(db, userId, call);
    requireRole(call, role);
    if (member.role === 'owner' && role !== 'owner') await requireOtherOwner(db, userId, call);
    await putMember(db, call.organization.id, userId, role);
    const payload = { user_id: userId, role, previous_role: member.role };
    await record({ type: 'member_role_changed', category: 'member', payload });
    return { ...member, role };
  }, viewMember);
}

async function remove(userId: string, call: RestCall): Promise<{ message: string }> {
  if (userId === requireUser(call).id) {
    const message = 'user_id is yourself; ask another admin or owner to remove you';
    throw new PlatformError('invalid_request', message, { details: { field: 'user_id' } });
  }
  const keysLeft = await call.commit(async ({ db, record }) => {
    const { id } = call.organization;
    const member = await findManaged(db, userId, call);
    if (member.role === 'owner') await requireOtherOwner(db, userId, call);
    await removeMember(db, id, userId);
    const withdrawn = await removeInvitesOf(db, id, userId);
    const left = await countCredentials(db, 'api_keys', id, userId);
    const payload = {
      user_id: userId,
      role: member.role,
      invites_withdrawn: withdrawn,
      api_keys_left: left,
    };
    await record({ type: 'member_removed', category: 'member', payload });
    return left;
  }, describeRemoval);
  return describeRemoval(keysLeft);
}

/** Keys are the organization's and may be in use by its programs; only people know whether this member has copies. */
function describeRemoval(keysLeft: number): { message: string } {
  if (keysLeft === 0) return { message: 'The member is removed' };
  const keys =
    keysLeft === 1
      ? '1 API key that they made still works'
      : `${keysLeft} API keys that they made still work`;
  return { message: `The member is removed; ${keys}: revoke what they may have a copy of` };
}

/** The member, whom the caller must be allowed to manage. */
async function findManaged(db: Database, userId: string, call: RestCall): Promise<MemberRecord> {
  const member = await findMember(db, call.organization.id, userId);
  if (member === undefined) throw new PlatformError('not_found', 'There is no such member');
  requireRole(call, member.role);
  return member;
}

async function requireOtherOwner(db: Database, userId: string, call: RestCall): Promise<void> {
  if (await hasOtherOwner(db, call.organization.id, userId)) return;
  const message = 'This is the only owner; make another member an owner first';
  throw new PlatformError('invalid_request', message, { isConflict: true, details: { field: 'role' } });
}

function viewMember(member: MemberRecord) {
  return {
    user_id: member.userId,
    email: member.email,
    display_name: member.displayName,
    avatar_url: member.avatarUrl,
    role: member.role,
    joined_at: member.joinedAt,
  };
}
