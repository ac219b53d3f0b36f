import { ALL_NAMESPACES, DEFAULT_NAMESPACE, PlatformError } from '@svc/contract';
import type { Database } from '../store/database.ts';
import {
  API_KEY_PREFIX,
  findApiKey,
  findToken,
  TOKEN_PREFIX,
  type CredentialTable,
} from '../store/api-keys-and-tokens.ts';
import {
  ensureOrganization,
  findMembership,
  findOrMakeOrganization,
  putMember,
  type OrganizationRecord,
} from '../store/organizations.ts';
import { findSession, type SessionRecord } from '../store/sessions.ts';
import { ensureUser, findUserByEmail, type UserRecord } from '../store/users.ts';

/** The caller of the control plane, after the credential was checked. */
export type Principal =
  | {
      readonly kind: 'api_key';
      readonly id: string;
      readonly name: string;
      /** Id of the user who made the key; null: the operator. */
      readonly createdBy: string | null;
      /** The key reaches every namespace, so its holder owns this server. */
      readonly isOperator: boolean;
      readonly organization: OrganizationRecord;
    }
  /** `session` is null for a caller with a token. */
  | { readonly kind: 'user'; readonly user: UserRecord; readonly session: SessionRecord | null }
  /**
   * The server runs in development mode and asks for no credential: every caller owns everything. `default` where no organization is
   * named.
   */
  | { readonly kind: 'developer'; readonly user: UserRecord; readonly organization: OrganizationRecord };

/** @throws PlatformError `invalid_api_key`, always with the same message. */
export type Identify = (authorization: string | undefined) => Promise<Principal>;

interface SignedCredentials {
  /** Keys of `svc server keygen`. @throws when this server did not sign it */
  readonly verifyKey: (key: string) => Promise<{ readonly namespace: string }>;
  /** Sessions. @returns the session's id @throws when this server did not sign it */
  readonly verifySession: (token: string) => Promise<string>;
}

export interface CredentialChecks extends SignedCredentials {
  /** Called with every use of a credential that the store knows. */
  readonly noteUse: (table: CredentialTable, id: string, lastUsedAt: string | null) => void;
}

export const DEVELOPER_EMAIL = 'developer@localhost';

/** Identifies the caller from the value of the credential alone. */
export function identifyByCredential(database: Database, checks: CredentialChecks): Identify {
  return async (authorization) => {
    const secret = /^Bearer +(\S+)$/i.exec(authorization ?? '')?.[1];
    if (secret === undefined) throw unauthorized();
    if (secret.startsWith(TOKEN_PREFIX)) return await byToken(database, checks, secret);
    if (secret.startsWith(API_KEY_PREFIX) && secret.includes('.'))
      return await bySignedKey(database, checks, secret);
    if (secret.startsWith(API_KEY_PREFIX)) return await byApiKey(database, checks, secret);
    return await bySession(database, checks, secret);
  };
}

/** Every connection is the owner of organization `default`. User and organization are made when they are missing. */
export function identifyDeveloper(database: Database): Identify {
  return async () => {
    const found = await findDeveloper(database);
    if (found !== undefined) return found;
    const user = await ensureUser(database, DEVELOPER_EMAIL);
    await putMember(database, await ensureOrganization(database, DEFAULT_NAMESPACE), user.id, 'owner');
    const made = await findDeveloper(database);
    if (made === undefined) throw unauthorized();
    return made;
  };
}

async function findDeveloper(database: Database): Promise<Principal | undefined> {
  const user = await findUserByEmail(database, DEVELOPER_EMAIL);
  if (user === undefined) return undefined;
  const membership = await findMembership(database, DEFAULT_NAMESPACE, user.id);
  return membership && { kind: 'developer', user, organization: membership.organization };
}

async function byToken(
  database: Database,
  { noteUse }: CredentialChecks,
  secret: string,
): Promise<Principal> {
  const token = await findToken(database, secret);
  if (token === undefined) throw unauthorized();
  noteUse('tokens', token.id, token.lastUsedAt);
  return { kind: 'user', user: token.user, session: null };
}

async function byApiKey(
  database: Database,
  { noteUse }: CredentialChecks,
  secret: string,
): Promise<Principal> {
  const key = await findApiKey(database, secret);
  if (key === undefined) throw unauthorized();
  noteUse('api_keys', key.id, key.lastUsedAt);
  const { id, name, createdBy, organization } = key;
  return { kind: 'api_key', id, name, createdBy, isOperator: false, organization };
}

/** A key for every namespace acts for the default organization when a request names none. */
async function bySignedKey(
  database: Database,
  { verifyKey }: SignedCredentials,
  secret: string,
): Promise<Principal> {
  const { namespace } = await verifyKey(secret).catch(() => Promise.reject(unauthorized()));
  const slug = namespace === ALL_NAMESPACES ? DEFAULT_NAMESPACE : namespace;
  const organization = await findOrMakeOrganization(database, slug);
  if (organization === undefined) throw unauthorized();
  const name = `server key for ${namespace}`;
  const isOperator = namespace === ALL_NAMESPACES;
  return { kind: 'api_key', id: 'server-key', name, createdBy: null, isOperator, organization };
}

async function bySession(
  database: Database,
  { verifySession }: SignedCredentials,
  secret: string,
): Promise<Principal> {
  const id = await verifySession(secret).catch(() => Promise.reject(unauthorized()));
  const found = await findSession(database, id);
  if (found === undefined) throw unauthorized();
  return { kind: 'user', ...found };
}

export function unauthorized(): PlatformError {
  return new PlatformError('invalid_api_key', 'unauthorized');
}
