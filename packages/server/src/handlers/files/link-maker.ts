import { PlatformError } from '@svc/contract';
import { authorize, type Authority } from '../../access/authorize-rest.ts';
import { findApiKeyById, listActiveApiKeyIds } from '../../store/api-keys-and-tokens.ts';
import type { Database } from '../../store/database.ts';
import { findOrganizationById, type OrganizationRecord } from '../../store/organizations.ts';
import type { SandboxRecord } from '../../store/sandboxes.ts';
import { findUser } from '../../store/users.ts';

const LINKED = { role: 'member', audience: 'both' } as const;
/** Of the operator's own keys, which the store does not know. */
const OPERATOR = 'operator';

/** Names the credential of a call, as links carry it. */
export function makerOf({
  actor,
  user,
  isOperator,
}: Pick<Authority, 'actor' | 'user' | 'isOperator'>): string {
  if (isOperator) return OPERATOR;
  if (user !== null) return `user.${user.id}`;
  if (actor.kind === 'api_key') return `key.${actor.api_key_id}`;
  throw new Error(`a link cannot be made by ${actor.kind}`);
}

/**
 * The authority of the caller who made a link. What the caller may no longer do, the link does not do either.
 * @throws PlatformError `forbidden`
 */
export async function authorityOfMaker(
  database: Database,
  by: string,
  { organizationId }: Pick<SandboxRecord, 'organizationId'>,
): Promise<Authority & { readonly organization: OrganizationRecord }> {
  const organization = await findOrganizationById(database, organizationId);
  if (organization === undefined) throw notAllowed();
  const [kind, id = ''] = by.split('.');
  if (kind === 'user') {
    const user = await findUser(database, id);
    if (user === undefined) throw notAllowed();
    const principal = { kind: 'user', user, session: null } as const;
    return { ...(await authorize(database, LINKED, organization.slug, principal)), organization };
  }
  if (kind === OPERATOR || id === SERVER_KEY) {
    const actor = { kind: 'api_key', api_key_id: SERVER_KEY, name: 'key of the operator' } as const;
    const isOperator = kind === OPERATOR;
    return { organization, user: null, session: null, role: 'owner', actor, isOperator };
  }
  const key = await findApiKeyById(database, organization.id, id);
  if (key === undefined) throw notAllowed();
  const principal = { kind: 'api_key', ...key, isOperator: false, organization } as const;
  return { ...(await authorize(database, LINKED, undefined, principal)), organization };
}

/** All that could have made something for the organization as a program: what `makerOf` gives for its keys. */
export async function listMakers(
  database: Database,
  organizationId: string,
  limit: number,
): Promise<readonly string[]> {
  const ids = await listActiveApiKeyIds(database, organizationId, limit);
  return [OPERATOR, `key.${SERVER_KEY}`, ...ids.map((id) => `key.${id}`)];
}

const SERVER_KEY = 'server-key';

function notAllowed(): PlatformError {
  return new PlatformError(
    'forbidden',
    'The credential that made this link was revoked; have another one made',
  );
}
