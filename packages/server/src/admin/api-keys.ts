import { DEFAULT_NAMESPACE, PlatformError } from '@svc/contract';
import { checkRestInput } from '@svc/contract/rest';
import { createApiKey, type IssuedCredential } from '../store/credentials.ts';
import { listApiKeys, revokeApiKey, type CredentialRecord } from '../store/list-credentials.ts';
import { ensureOrganization } from '../store/organizations.ts';
import {
  changeStore,
  expiryAfter,
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

/** Absent organization: the one that requests without a namespace mean, which is made when it is missing. */
export async function createLocalApiKey(
  place: StorePlace,
  slug: string | undefined,
  { name, expire }: NewLocalCredential,
): Promise<LocalCredential & { readonly organization: string }> {
  checkRestInput('apiKeys.create', 'body', { name });
  const expiresAt = expiryAfter(expire);
  return await changeStore(place, async (transaction) => {
    if (slug === undefined) await ensureOrganization(transaction, DEFAULT_NAMESPACE);
    const organization = await requireOrganization(transaction, slug ?? DEFAULT_NAMESPACE);
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

/** Those that were not revoked, newest first. */
export async function listLocalApiKeys(
  place: StorePlace,
  slug: string,
): Promise<readonly CredentialRecord[]> {
  return await withStore(place, async (database) => {
    const { id } = await requireOrganization(database, slug);
    return await listApiKeys(database, id, { limit: Number.MAX_SAFE_INTEGER - 1, after: null });
  });
}

/** @throws PlatformError `not_found` when there is none, or it was revoked before */
export async function revokeLocalApiKey(
  place: StorePlace,
  slug: string,
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
