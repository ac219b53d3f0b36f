import { PlatformError } from '@svc/contract';
import { checkRestInput } from '@svc/contract/rest';
import { expiryAfter } from '../access/duration.ts';
import { hasPeople } from '../access/people.ts';
import { createOwnerLink } from '../store/owner-links.ts';
import { createSignInLink } from '../store/sessions.ts';
import { ensureUser } from '../store/users.ts';
import { changeStore, type StorePlace } from './local-store.ts';
import { recordForUser } from './tokens.ts';

interface LocalLink {
  readonly secret: string;
  readonly expiresAt: string;
}

/** A secret that signs a user in once; the user is made when missing. */
export async function createLocalSignInLink(
  place: StorePlace,
  email: string,
  expire: string,
): Promise<LocalLink> {
  checkRestInput('invites.create', 'body', { email });
  const expiresAt = expiryAfter(expire) ?? '';
  return await changeStore(place, async (transaction) => {
    const user = await ensureUser(transaction, email);
    const secret = await createSignInLink(transaction, user.id, expiresAt);
    const payload = { user_id: user.id, expires_at: expiresAt };
    await recordForUser(transaction, user.id, { type: 'sign_in_link_created', category: 'user', payload });
    return { secret, expiresAt };
  });
}

/** A secret with which the first user of this server signs up. @throws PlatformError when there is a user already */
export async function createLocalOwnerLink(place: StorePlace, expire: string): Promise<LocalLink> {
  const expiresAt = expiryAfter(expire) ?? '';
  return await changeStore(place, async (transaction) => {
    if (await hasPeople(transaction)) {
      const message =
        'There are people on this server already; name the one who is to sign in: svc user link EMAIL';
      throw new PlatformError('invalid_request', message);
    }
    return { secret: await createOwnerLink(transaction, expiresAt), expiresAt };
  });
}
