import { PlatformError } from '@svc/contract';
import { checkRestInput, type EventKind } from '@svc/contract/rest';
import { createToken, listTokens, revokeToken, type CredentialRecord } from '../store/api-keys-and-tokens.ts';
import type { Database } from '../store/database.ts';
import { listMemberships } from '../store/organizations.ts';
import { ensureUser, findUserByEmail, type UserRecord } from '../store/users.ts';
import type { LocalCredential, NewLocalCredential } from './api-keys.ts';
import { expiryAfter } from '../access/duration.ts';
import { changeStore, recordFromCli, withStore, type StorePlace } from './local-store.ts';

/** A personal access token, such as a user's first credential. The user is made when missing. */
export async function createLocalToken(
  place: StorePlace,
  email: string,
  { name, expire }: NewLocalCredential,
): Promise<LocalCredential & { readonly user: UserRecord }> {
  checkRestInput('invites.create', 'body', { email });
  checkRestInput('tokens.create', 'body', { name });
  const expiresAt = expiryAfter(expire);
  return await changeStore(place, async (transaction) => {
    const user = await ensureUser(transaction, email);
    const issued = await createToken(transaction, user.id, { name, createdBy: null, expiresAt });
    const payload = { token_id: issued.id, name, user_id: user.id, expires_at: expiresAt };
    await recordForUser(transaction, user.id, { type: 'token_created', category: 'token', payload });
    return { ...issued, name, expiresAt, user };
  });
}

/** Tokens that are not revoked, newest first. */
export async function listLocalTokens(
  place: StorePlace,
  email: string,
): Promise<readonly CredentialRecord[]> {
  return await withStore(
    place,
    async (database) => await listTokens(database, (await requireUser(database, email)).id),
  );
}

/** @throws PlatformError `not_found` when there is none, or it is revoked already */
export async function revokeLocalToken(
  place: StorePlace,
  email: string,
  id: string,
): Promise<CredentialRecord> {
  return await changeStore(place, async (transaction) => {
    const user = await requireUser(transaction, email);
    const revoked = await revokeToken(transaction, user.id, id.toLowerCase());
    if (revoked === undefined) {
      throw new PlatformError('not_found', `There is no token ${id}; see \`svc token ls --user ${email}\``);
    }
    const payload = { token_id: revoked.id, name: revoked.name, user_id: user.id };
    await recordForUser(transaction, user.id, { type: 'token_revoked', category: 'token', payload });
    return revoked;
  });
}

async function requireUser(db: Database, email: string): Promise<UserRecord> {
  const user = await findUserByEmail(db, email);
  if (user !== undefined) return user;
  throw new PlatformError('not_found', `There is no user ${email}; make one with: svc token create --user`);
}

/** Records it in each of the user's organizations, always in the same order, which prevents deadlocks. */
export async function recordForUser(
  transaction: Database,
  userId: string,
  event: EventKind & Pick<Parameters<typeof recordFromCli>[1], 'payload'>,
): Promise<void> {
  const memberships = await listMemberships(transaction, userId);
  for (const organizationId of memberships.map(({ organization }) => organization.id).toSorted()) {
    await recordFromCli(transaction, { organizationId, ...event });
  }
}
