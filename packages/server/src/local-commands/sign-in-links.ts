import { checkRestInput } from '@svc/contract/rest';
import { expiryAfter } from '../access/duration.ts';
import { createSignInLink } from '../store/sessions.ts';
import { ensureUser } from '../store/users.ts';
import { changeStore, type StorePlace } from './local-store.ts';
import { recordForUser } from './tokens.ts';

/** A secret that signs somebody in once; the user is made when missing. */
export async function createLocalSignInLink(
  place: StorePlace,
  email: string,
  expire: string,
): Promise<{ readonly secret: string; readonly expiresAt: string }> {
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
