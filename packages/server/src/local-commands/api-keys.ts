import { DEFAULT_NAMESPACE, PlatformError } from '@svc/contract';
import { checkRestInput } from '@svc/contract/rest';
import {
  createApiKey,
  listApiKeys,
  revokeApiKey,
  type CredentialRecord,
  type IssuedCredential,
} from '../store/api-keys-and-tokens.ts';
import { ensureOrganization, findOrganization } from '../store/organizations.ts';
import { expiryAfter } from '../access/duration.ts';
import {
  changeStore,
  recordFromCli,
  requireOrganization,
  withStore,
  type StorePlace,
} from './local-store.ts';

export interface NewLocalCredential {
  readonly name: string;
  /** Such as `30d`; absent: never. */
  readonly expire?: string | undefined;
}

export interface LocalCredential extends IssuedCredential {
  readonly name: string;
  readonly expiresAt: string | null;
}

/** Without a slug the key is for the default organization, which is made when it is missing. */
export async function createLocalApiKey(
  place: StorePlace,
  slug: string = DEFAULT_NAMESPACE,
  { name, expire }: NewLocalCredential,
): Promise<LocalCredential & { readonly organization: string }> {
  checkRestInput('apiKeys.create', 'body', { name });
  const expiresAt = expiryAfter(expire);
  return await changeStore(place, async (transaction) => {
    if (slug === DEFAULT_NAMESPACE) await ensureOrganization(transaction, slug);
    const organization = await requireOrganization(transaction, slug);
    const issued = await createApiKey(transaction, organization.id, { name, createdBy: null, expiresAt });
    await recordFromCli(transaction, {
      organizationId: organization.id,
      type: 'api_key_created',
      category: 'api_key',
      payload: { api_key_id: issued.id, name, expires_at: expiresAt },
    });
    return { ...issued, name, expiresAt, organization: organization.slug };
  });
}

/** Keys that are not revoked, newest first. */
export async function listLocalApiKeys(
  place: StorePlace,
  slug: string = DEFAULT_NAMESPACE,
): Promise<readonly CredentialRecord[]> {
  return await withStore(place, async (database) => {
    // The default organization has no keys before it is made.
    if (slug === DEFAULT_NAMESPACE && (await findOrganization(database, slug)) === undefined) return [];
    const { id } = await requireOrganization(database, slug);
    return await listApiKeys(database, id, { limit: Number.MAX_SAFE_INTEGER - 1, after: null });
  });
}

/** @throws PlatformError `not_found` when there is none, or it is revoked already */
export async function revokeLocalApiKey(
  place: StorePlace,
  slug: string | undefined = DEFAULT_NAMESPACE,
  id: string,
): Promise<CredentialRecord> {
  return await changeStore(place, async (transaction) => {
    const organization = await requireOrganization(transaction, slug);
    const revoked = await revokeApiKey(transaction, organization.id, id.toLowerCase());
    if (revoked === undefined) {
      throw new PlatformError('not_found', `There is no API key ${id}; see \`svc apikey ls --org ${slug}\``);
    }
    await recordFromCli(transaction, {
      organizationId: organization.id,
      type: 'api_key_revoked',
      category: 'api_key',
      payload: { api_key_id: revoked.id, name: revoked.name },
    });
    return revoked;
  });
}
