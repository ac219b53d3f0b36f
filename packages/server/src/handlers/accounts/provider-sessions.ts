import { PlatformError } from '@svc/contract';
import { calculatePKCECodeChallenge, randomNonce, randomPKCECodeVerifier } from 'openid-client';
import { ProviderError, type OpenId, type OpenIdIdentity } from '../../access/openid.ts';
import { Attempts } from '../../access/sign-in.ts';
import type { Change } from '../../dispatch/rest-call.ts';
import type { RestHandlers } from '../../dispatch/rest-handlers.ts';
import type { OutboundRules } from '../../outbound/send-outbound.ts';
import type { Sealer } from '../../secrets/sealer.ts';
import type { Database } from '../../store/database.ts';
import {
  clientSecretContext,
  findIdentityProvider,
  findUserOfIdentity,
  putIdentity,
  type IdentityProviderRecord,
} from '../../store/identity-providers.ts';
import { takeInviteTo } from '../../store/invites.ts';
import { lockLivingOrganization } from '../../store/lock-organization.ts';
import { findMember } from '../../store/members.ts';
import { findOrganization, putMember } from '../../store/organizations.ts';
import { ensureUser, findUser, findUserByEmail, updateUser, type UserRecord } from '../../store/users.ts';
import { beginSession, requireSignIn, type AccountParts } from './sessions.ts';

const ATTEMPT_MS = 10 * 60_000;
const STATE_CONTEXT = 'provider-attempt';
const MAX_NAME_LENGTH = 128;

export interface ProviderSessionParts extends Pick<AccountParts, 'signSession'> {
  readonly database: Database;
  readonly sealer: Sealer;
  readonly openId: OpenId;
  readonly outbound: OutboundRules;
}

/** The state that comes back from the provider with the browser. Sealed, so that it cannot be forged and needs no storage. */
interface Attempt {
  readonly organizationId: string;
  readonly challenge: string;
  readonly nonce: string;
  readonly redirectUri: string;
  readonly expiresAt: number;
}

type Names = 'session.beginAtProvider' | 'session.createByProvider';

export function providerSessionHandlers(parts: ProviderSessionParts): Pick<RestHandlers, Names> {
  return {
    'session.beginAtProvider': async ({ body: { organization: slug, redirect_uri: redirectUri } }) => {
      requireSignIn(parts);
      const { database, sealer, openId } = parts;
      const organization = await findOrganization(database, slug);
      const provider = organization && (await findIdentityProvider(database, organization.id));
      if (provider === undefined) throw noProvider();
      const ticket = randomPKCECodeVerifier();
      const attempt: Attempt = {
        organizationId: provider.organizationId,
        challenge: await calculatePKCECodeChallenge(ticket),
        nonce: randomNonce(),
        redirectUri,
        expiresAt: Date.now() + ATTEMPT_MS,
      };
      const { challenge, nonce } = attempt;
      const state = sealer.seal(JSON.stringify(attempt), STATE_CONTEXT);
      const begin = { redirectUri, state, nonce, challenge };
      return { authorization_url: await asked(openId.beginUrl(provider, begin)), ticket };
    },
    'session.createByProvider': async ({ body: { state, code, ticket } }, call) => {
      requireSignIn(parts);
      const attempt = await readAttempt(parts.sealer, state, ticket);
      const { organizationId } = attempt;
      // Every attempt causes requests to the provider: limited, so that this server cannot be used to flood it.
      const attempts = new Attempts(
        parts.database,
        `provider of ${organizationId} from ${call.sourceAddress ?? 'somewhere'}`,
        call.sourceAddress,
      );
      await attempts.begin();
      const provider = await findIdentityProvider(parts.database, organizationId);
      if (provider === undefined) throw noProvider();
      const identity = await identityOf(parts, provider, attempt, { code, ticket });
      const session = await call.commit(async (change) => {
        const user = await admit(change, provider, identity);
        const { hasSecondFactor } = identity;
        return await beginSession(parts, change, { user, hasSecondFactor, organizationId }, call);
      });
      await attempts.succeed();
      return session;
    },
  };
}

async function identityOf(
  { sealer, openId }: ProviderSessionParts,
  provider: IdentityProviderRecord,
  { redirectUri, nonce }: Attempt,
  { code, ticket }: { readonly code: string; readonly ticket: string },
): Promise<OpenIdIdentity> {
  const { issuer, clientId, sealedClientSecret: sealed } = provider;
  const context = clientSecretContext(provider.organizationId);
  const clientSecret = sealed === null ? null : sealer.open(sealed, context);
  const end = { code, verifier: ticket, redirectUri, nonce };
  return await asked(openId.identify({ issuer, clientId, clientSecret }, end));
}

/** @throws PlatformError `sign_in_failed` when another browser began it, or too long ago */
async function readAttempt(sealer: Sealer, state: string, ticket: string): Promise<Attempt> {
  const attempt = openAttempt(sealer, state);
  const challenge = await calculatePKCECodeChallenge(ticket);
  if (attempt !== undefined && attempt.expiresAt > Date.now() && attempt.challenge === challenge)
    return attempt;
  const message = 'This sign-in was not begun here, or too long ago; begin again';
  throw new PlatformError('sign_in_failed', message, { details: { field: 'state' } });
}

function openAttempt(sealer: Sealer, state: string): Attempt | undefined {
  try {
    // Sealed by this server alone.
    return JSON.parse(sealer.open(state, STATE_CONTEXT)) as Attempt;
  } catch {
    return undefined;
  }
}

/** A known subject is the same user as before. A new one is matched by an address that the provider has verified. */
async function admit(
  change: Change,
  provider: IdentityProviderRecord,
  { subject, email, name }: OpenIdIdentity,
): Promise<UserRecord> {
  const { db } = change;
  const { organizationId, issuer, emailDomains } = provider;
  await lockLivingOrganization(db, organizationId);
  const identity = { organizationId, issuer, subject };
  const knownId = await findUserOfIdentity(db, identity);
  const known = knownId === undefined ? undefined : await findUser(db, knownId);
  const address = known?.email ?? email;
  if (address === null)
    throw refused('The identity provider vouches for no e-mail address of yours (email_verified)');
  const user = known ?? (await findUserByEmail(db, address));
  const isMember = user !== undefined && (await findMember(db, organizationId, user.id)) !== undefined;
  const domain = address.slice(address.lastIndexOf('@') + 1).toLowerCase();
  const joined = isMember ? user : await join(known === undefined && emailDomains.includes(domain));
  if (known === undefined) await putIdentity(db, identity, joined.id);
  return joined;

  /** A removed member does not join again by their domain. */
  async function join(byDomain: boolean): Promise<UserRecord> {
    const invite = await takeInviteTo(db, organizationId, address ?? '');
    if (invite === undefined && !byDomain)
      throw refused('You are not a member of this organization; ask one of its admins for an invite');
    const made = user ?? (await makeUser(db, address ?? '', name));
    const role = invite?.role ?? 'member';
    await putMember(db, organizationId, made.id, role);
    const payload = { invite_id: invite?.id ?? null, user_id: made.id, role, by: 'identity_provider' };
    await change.record({ type: 'member_joined', category: 'member', payload }, organizationId);
    return made;
  }
}

async function makeUser(db: Database, email: string, name: string | null): Promise<UserRecord> {
  const made = await ensureUser(db, email);
  const displayName = name
    ?.replaceAll(/\p{Cc}/gu, ' ')
    .trim()
    .slice(0, MAX_NAME_LENGTH)
    .trim();
  return displayName === undefined || displayName === ''
    ? made
    : await updateUser(db, made.id, { displayName });
}

/** A refusal by the provider is a failed sign-in; an unreachable provider is a transient error. */
async function asked<Result>(work: Promise<Result>): Promise<Result> {
  try {
    return await work;
  } catch (error) {
    if (!(error instanceof ProviderError)) throw error;
    throw new PlatformError('unavailable', `Signing in failed: ${error.message}; begin again`, {
      cause: error,
    });
  }
}

export function noProvider(): PlatformError {
  return new PlatformError('not_found', 'This organization has no identity provider');
}

function refused(message: string): PlatformError {
  return new PlatformError('forbidden', message);
}
