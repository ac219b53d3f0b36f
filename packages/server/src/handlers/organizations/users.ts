import { PlatformError } from '@svc/contract';
import type { RestInput, RestOperations } from '@svc/contract/rest';
import { requireFreshProof } from '../../access/fresh-proof.ts';
import type { Sealer } from '../../secrets/sealer.ts';
import type { Database } from '../../store/database.ts';
import { lockLivingOrganization } from '../../store/lock-organization.ts';
import { findMember, hasOtherOwner } from '../../store/members.ts';
import { listMemberships, type OrganizationRecord } from '../../store/organizations.ts';
import { deleteUser, updateUser, type UserRecord } from '../../store/users.ts';
import { recordEverywhere } from '../../dispatch/record-everywhere.ts';
import { requireUser } from '../../dispatch/require-user.ts';
import type { Change, RestCall } from '../../dispatch/rest-call.ts';
import type { RestHandlers } from '../../dispatch/rest-handlers.ts';

interface UserParts {
  readonly database: Database;
  readonly sealer: Sealer;
}

export function userHandlers(
  parts: UserParts,
): Pick<RestHandlers, Extract<keyof RestHandlers, `users.${string}`>> {
  return {
    'users.get': async (_input, call) => await Promise.resolve(viewUser(requireUser(call))),
    'users.update': async ({ body }, call) => {
      const { id } = requireUser(call);
      const { display_name: displayName, avatar_url: avatarUrl } = body;
      const changed = await call.commit(async (change) => {
        const payload = { user_id: id, ...body };
        await recordEverywhere(change, id, { type: 'user_updated', category: 'user', payload });
        return await updateUser(change.db, id, { displayName, avatarUrl });
      }, viewUser);
      return viewUser(changed);
    },
    'users.remove': async ({ body }, call) => await remove(parts, body, call),
  };
}

/** Deletes an account. The address has to be typed, against mistakes; a fresh proof is needed, against use of an open browser. */
async function remove(
  parts: UserParts,
  { confirm, current_password: password, code }: RestInput<RestOperations['users.remove']>['body'],
  call: RestCall,
): Promise<{ message: string }> {
  const user = requireUser(call);
  if (confirm.toLowerCase() !== user.email) {
    const message = 'confirm must be your e-mail address';
    throw new PlatformError('invalid_request', message, { details: { field: 'confirm' } });
  }
  await requireFreshProof(parts, user, { password, code }, call.sourceAddress);
  const answer = () => ({ message: 'Your account is deleted' });
  await call.commit(async (change) => {
    const memberships = await listMemberships(change.db, user.id);
    // Always in the same order, so that two calls cannot deadlock.
    const sorted = memberships.toSorted((a, b) => (a.organization.id < b.organization.id ? -1 : 1));
    for (const { organization } of sorted) await leave(change, user.id, organization);
    await deleteUser(change.db, user.id);
  }, answer);
  return answer();
}

async function leave(
  { db, record }: Change,
  userId: string,
  { id, slug }: OrganizationRecord,
): Promise<void> {
  await lockLivingOrganization(db, id);
  const member = await findMember(db, id, userId);
  if (member?.role === 'owner' && !(await hasOtherOwner(db, id, userId))) {
    const message = `You are the only owner of '${slug}'; make another member an owner, or delete it`;
    const details = { organization: slug };
    throw new PlatformError('invalid_request', message, { isConflict: true, details });
  }
  const payload = { user_id: userId, role: member?.role ?? null, reason: 'account_deleted' };
  await record({ type: 'member_removed', category: 'member', payload }, id);
}

export function viewUser(user: UserRecord) {
  return {
    id: user.id,
    email: user.email,
    display_name: user.displayName,
    avatar_url: user.avatarUrl,
    created_at: user.createdAt,
    updated_at: user.updatedAt,
  };
}
