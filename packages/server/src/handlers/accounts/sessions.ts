import { DEFAULT_NAMESPACE, PlatformError } from '@svc/contract';
import { requirePassword } from '../../access/fresh-proof.ts';
import { hasPeople } from '../../access/people.ts';
import { hashPassword } from '../../access/password.ts';
import { SESSION_MS, type SignSession } from '../../access/sessions.ts';
import { Attempts, noCode, proveCode, signInByPassword, type SignedIn } from '../../access/sign-in.ts';
import type { SignUp } from '../../access/sign-up.ts';
import { recordEverywhere } from '../../dispatch/record-everywhere.ts';
import { requireUser } from '../../dispatch/require-user.ts';
import type { Change, RestCall } from '../../dispatch/rest-call.ts';
import type { RestHandlers } from '../../dispatch/rest-handlers.ts';
import type { Sealer } from '../../secrets/sealer.ts';
import type { Database } from '../../store/database.ts';
import { findInvite } from '../../store/invites.ts';
import { ensureOrganization, putMember } from '../../store/organizations.ts';
import { takeOwnerLink } from '../../store/owner-links.ts';
import { putPasswordHash } from '../../store/passwords.ts';
import { findSecondFactor } from '../../store/second-factors.ts';
import {
  createSession,
  endSessions,
  findSignInLink,
  listSessions,
  takeSignInLink,
  type SessionRecord,
} from '../../store/sessions.ts';
import {
  ensureUser,
  findUser,
  findUserByEmail,
  lockUser,
  updateUser,
  type UserRecord,
} from '../../store/users.ts';
import { viewUser } from '../organizations/users.ts';

const MAX_AGENT_LENGTH = 256;

export interface AccountParts {
  readonly database: Database;
  readonly sealer: Sealer;
  /** Null: development mode, without credentials. */
  readonly signSession: SignSession | null;
  readonly signUp: SignUp;
}

type Names = Exclude<
  Extract<keyof RestHandlers, `session.${string}` | `sessions.${string}` | 'password.set'>,
  'session.beginAtProvider' | 'session.createByProvider'
>;

export function sessionHandlers(parts: AccountParts): Pick<RestHandlers, Names> {
  const { database } = parts;
  return {
    'session.create': async ({ body: { email, password, code } }, call) => {
      requireSignIn(parts);
      const signedIn = await signInByPassword(parts, { email, password, code }, call.sourceAddress);
      return await call.commit((change) => beginSession(parts, change, signedIn, call));
    },
    'session.createByLink': async ({ body: { token, code } }, call) => {
      requireSignIn(parts);
      const link = await findSignInLink(database, token);
      const user = link === undefined ? undefined : await findUser(database, link.userId);
      if (user === undefined) throw noLink();
      const hasSecondFactor = await checkFactor(parts, user, code, call);
      return await call.commit(async (change) => {
        // Another request may have used it since.
        if ((await takeSignInLink(change.db, token)) === undefined) throw noLink();
        return await beginSession(parts, change, { user, hasSecondFactor }, call);
      });
    },
    'session.get': async (_input, call) => {
      const { session, user } = requireSession(call);
      return await Promise.resolve(viewSession(session, user));
    },
    'session.end': async (_input, call) => {
      const { session, user } = requireSession(call);
      await call.commit(async (change) => {
        await endSessions(change.db, user.id, { only: session.id });
        await recordSession(change, 'session_ended', session);
      });
      call.setSession(null);
      return { message: 'You are signed out' };
    },
    'sessions.list': async (_input, call) =>
      (await listSessions(database, requireUser(call).id)).map((session) => ({
        ...viewFields(session),
        is_current: session.id === call.session?.id,
      })),
    'sessions.endAll': async (_input, call) => {
      const { id } = requireUser(call);
      const count = await call.commit(async (change) => {
        const payload = { user_id: id };
        await recordEverywhere(change, id, { type: 'sessions_ended', category: 'session', payload });
        return await endSessions(change.db, id);
      });
      call.setSession(null);
      return { message: `You are signed out everywhere (${count} sessions)` };
    },
    'sessions.signUp': async ({ body }, call) => {
      requireSignIn(parts);
      return await signUp(parts, body, call);
    },
    'password.set': async ({ body }, call) =>
      await setPassword(database, body.password, body.current_password, call),
  };
}

/** Begins a new session after authentication; no session id of the request is continued, which prevents session fixation. */
export async function beginSession(
  { signSession }: Pick<AccountParts, 'signSession'>,
  change: Change,
  { user, hasSecondFactor, organizationId = null }: SignedIn,
  call: RestCall,
) {
  const session = await createSession(change.db, {
    userId: user.id,
    hasSecondFactor,
    organizationId,
    userAgent: call.userAgent.slice(0, MAX_AGENT_LENGTH),
    sourceAddress: call.sourceAddress,
    expiresAt: new Date(Date.now() + SESSION_MS).toISOString(),
  });
  await recordSession(change, 'session_created', session);
  const token = await signSession?.(session);
  if (token !== undefined) call.setSession({ token, expiresAt: session.expiresAt });
  return viewSession(session, user);
}

/** The link replaces the password, never the second factor. */
async function checkFactor(
  parts: AccountParts,
  user: UserRecord,
  code: string | undefined,
  call: RestCall,
): Promise<boolean> {
  const factor = await findSecondFactor(parts.database, user.id);
  if (factor?.isConfirmed !== true) return false;
  if (code !== undefined && (await proveCode(parts, user, { factor, code }, call.sourceAddress))) return true;
  throw noCode(code);
}

interface NewAccount {
  readonly email: string;
  readonly password: string;
  readonly display_name?: string;
  readonly token?: string;
}

/** Does not use up an invite: the person accepts it once they are signed in. */
async function signUp(parts: AccountParts, account: NewAccount, call: RestCall) {
  const attempts = new Attempts(parts.database, account.email, call.sourceAddress);
  await attempts.begin();
  const hash = await hashPassword(account.password);
  const session = await call.commit(async (change) => {
    const { db } = change;
    const isOwner = await admit(parts, db, account);
    if ((await findUserByEmail(db, account.email)) !== undefined) {
      const message =
        'There is an account with this address; sign in, or ask the operator for `svc user link`';
      throw new PlatformError('name_already_exists', message, { details: { field: 'email' } });
    }
    const made = await ensureUser(db, account.email);
    const { display_name: displayName } = account;
    const user = displayName === undefined ? made : await updateUser(db, made.id, { displayName });
    await putPasswordHash(db, user.id, hash);
    if (isOwner) await giveDefaultOrganization(change, user);
    return await beginSession(parts, change, { user, hasSecondFactor: false }, call);
  });
  await attempts.succeed();
  return session;
}

/** Whether it is the owner of the server, with the link of its first start. @throws PlatformError `forbidden` */
async function admit(
  { signUp: rule }: AccountParts,
  db: Database,
  { email, token }: NewAccount,
): Promise<boolean> {
  if (token === undefined && rule === 'open') return false;
  if (token === undefined)
    throw new PlatformError('forbidden', 'Signing up takes an invite; ask a member to send you one');
  // The link is void once the first user exists, even one who signed up another way.
  if ((await takeOwnerLink(db, token)) && !(await hasPeople(db))) return true;
  const found = rule === 'closed' ? undefined : await findInvite(db, token);
  if (found?.invite.email !== email.toLowerCase())
    throw new PlatformError(
      'forbidden',
      'The invite or link was used, has expired or is for another address',
    );
  return false;
}

/** Makes the owner the owner of the default organization, for which keys of this machine act. Its only member may be the developer. */
async function giveDefaultOrganization({ db, record }: Change, { id }: UserRecord): Promise<void> {
  const organizationId = await ensureOrganization(db, DEFAULT_NAMESPACE);
  await putMember(db, organizationId, id, 'owner');
  const payload = { user_id: id, role: 'owner' };
  await record({ type: 'member_joined', category: 'member', payload }, organizationId);
}

/** A session alone is not enough, so that an open browser cannot be used to take over the account. */
async function setPassword(
  database: Database,
  password: string,
  current: string | undefined,
  call: RestCall,
): Promise<{ message: string }> {
  const user = requireUser(call);
  await requirePassword(database, user, current, call.sourceAddress);
  const hash = await hashPassword(password);
  await call.commit(async (change) => {
    await lockUser(change.db, user.id);
    await putPasswordHash(change.db, user.id, hash);
    await endSessions(change.db, user.id, call.session === null ? {} : { except: call.session.id });
    const payload = { user_id: user.id };
    await recordEverywhere(change, user.id, { type: 'password_changed', category: 'user', payload });
  });
  return { message: 'The password is changed; your other sessions have ended' };
}

async function recordSession(
  change: Change,
  type: 'session_created' | 'session_ended',
  session: SessionRecord,
): Promise<void> {
  const payload = {
    session_id: session.id,
    user_id: session.userId,
    has_second_factor: session.hasSecondFactor,
  };
  const event = { type, category: 'session' as const, payload };
  // Sign-ins at one organization's provider are not reported to the user's other organizations.
  if (session.organizationId === null) await recordEverywhere(change, session.userId, event);
  else await change.record(event, session.organizationId);
}

export function requireSignIn({ signSession }: Pick<AccountParts, 'signSession'>): void {
  if (signSession !== null) return;
  throw new PlatformError(
    'forbidden',
    'This server runs in development mode: there is nothing to sign in to',
  );
}

function requireSession(call: RestCall): { readonly session: SessionRecord; readonly user: UserRecord } {
  const user = requireUser(call);
  if (call.session === null) throw new PlatformError('not_found', 'This request is made without a session');
  return { session: call.session, user };
}

function noLink(): PlatformError {
  const message = 'The link was used before or has expired; ask the operator for `svc user link`';
  return new PlatformError('sign_in_failed', message, { details: { field: 'token' } });
}

function viewSession(session: SessionRecord, user: UserRecord) {
  return { ...viewFields(session), user: viewUser(user) };
}

function viewFields(session: SessionRecord) {
  return {
    id: session.id,
    has_second_factor: session.hasSecondFactor,
    organization_id: session.organizationId,
    user_agent: session.userAgent,
    source_address: session.sourceAddress,
    created_at: session.createdAt,
    expires_at: session.expiresAt,
  };
}
