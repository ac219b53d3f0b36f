import { Type } from '../schema/type.ts';
import { strictObject } from '../spec/strict.ts';
import { MessageResponse, NO_FIELDS, nullable, Timestamp, Uuid } from './fields.ts';
import { DisplayName, Email, OrganizationSlug } from './organization-fields.ts';
import type { RestOperation } from './rest-operation.ts';
import { User } from './users.ts';

const Password = Type.String({
  minLength: 10,
  maxLength: 1024,
  description: 'At least 10 characters, of any kind',
});
/** The password at a sign-in is compared, so its length has no lower limit. */
const AnyPassword = Type.String({ minLength: 1, maxLength: 1024 });
const Code = Type.String({
  minLength: 6,
  maxLength: 32,
  description: 'Of the authenticator app, or a recovery code',
});
const Secret = Type.String({ minLength: 1, maxLength: 256 });

const SESSION = {
  id: Uuid,
  has_second_factor: Type.Boolean({ description: 'Whether a code was given when it began' }),
  organization_id: nullable(Uuid, {
    description:
      "The one that it is limited to, as its identity provider signed the user in; null: all of the user's",
  }),
  user_agent: Type.String(),
  source_address: nullable(Type.String()),
  created_at: Timestamp,
  expires_at: Timestamp,
};
const Session = strictObject({ ...SESSION, user: User });

const COMMON = {
  tag: 'sessions',
  role: 'member',
  params: NO_FIELDS,
  query: NO_FIELDS,
  headers: NO_FIELDS,
  status: 200,
} as const;
const OF_ANYONE = { ...COMMON, audience: 'anyone' } as const;
const OF_USER = { ...COMMON, audience: 'user' } as const;

/** Signing in sets a cookie that scripts of a page cannot read; the answers hold no secret. */
export const accountOperations = {
  'session.create': {
    ...OF_ANYONE,
    summary: 'Sign in with e-mail address, password and, where the user has one, a second factor',
    method: 'POST',
    path: '/session',
    body: strictObject({ email: Email, password: AnyPassword, code: Type.Optional(Code) }),
    output: Session,
    errors: ['rate_limited', 'sign_in_failed', 'unavailable'],
  },
  'session.createByLink': {
    ...OF_ANYONE,
    summary: 'Sign in with a link that works once (svc user link)',
    method: 'POST',
    path: '/session/link',
    body: strictObject({ token: Secret, code: Type.Optional(Code) }),
    output: Session,
    errors: ['rate_limited', 'sign_in_failed'],
  },
  'session.beginAtProvider': {
    ...OF_ANYONE,
    summary: 'Begin to sign in at the identity provider of an organization (OpenID Connect)',
    method: 'POST',
    path: '/session/provider',
    body: strictObject({
      organization: OrganizationSlug,
      redirect_uri: Type.String({
        pattern: '^https?://[\\x21-\\x7e]{1,1000}$',
        description: 'The page that the provider sends the browser back to; the provider has to know it',
      }),
    }),
    output: strictObject({
      authorization_url: Type.String({ description: 'Where to send the browser' }),
      ticket: Type.String({
        description:
          'Kept by the page and sent at the end, so that only the browser that began a sign-in ends it',
      }),
    }),
    errors: ['not_found', 'unavailable'],
  },
  'session.createByProvider': {
    ...OF_ANYONE,
    summary: 'Sign in with what the identity provider sent the browser back with',
    method: 'POST',
    path: '/session/provider/answer',
    body: strictObject({
      state: Type.String({ minLength: 1, maxLength: 4096 }),
      code: Type.String({ minLength: 1, maxLength: 4096 }),
      ticket: Secret,
    }),
    output: Session,
    errors: ['forbidden', 'not_found', 'rate_limited', 'sign_in_failed', 'unavailable'],
  },
  'session.get': {
    ...OF_USER,
    takesLimitedSession: true,
    summary: 'Get the session that the request is made in',
    method: 'GET',
    path: '/session',
    body: null,
    output: Session,
    errors: ['not_found'],
  },
  'session.end': {
    ...OF_USER,
    takesLimitedSession: true,
    summary: 'Sign out: the session that the request is made in ends',
    method: 'DELETE',
    path: '/session',
    body: null,
    output: MessageResponse,
    errors: ['not_found'],
  },
  'sessions.list': {
    ...OF_USER,
    summary: 'List the sessions of the user, newest first',
    method: 'GET',
    path: '/users/me/sessions',
    body: null,
    output: Type.Array(strictObject({ ...SESSION, is_current: Type.Boolean() })),
    errors: [],
  },
  'sessions.endAll': {
    ...OF_USER,
    summary: 'Sign out everywhere: every session of the user ends',
    method: 'DELETE',
    path: '/users/me/sessions',
    body: null,
    output: MessageResponse,
    errors: [],
  },
  'sessions.signUp': {
    ...OF_ANYONE,
    summary: 'Sign up: with an invite, or freely where the operator allows it',
    method: 'POST',
    path: '/sign-up',
    body: strictObject({
      email: Email,
      password: Password,
      display_name: Type.Optional(DisplayName),
      token: Type.Optional(Secret),
    }),
    output: Session,
    errors: ['forbidden', 'name_already_exists', 'rate_limited', 'unavailable'],
  },
  'password.set': {
    ...OF_USER,
    tag: 'users',
    summary: 'Choose a password; other sessions of the user end',
    method: 'PUT',
    path: '/users/me/password',
    body: strictObject({
      password: Password,
      current_password: Type.Optional(AnyPassword),
    }),
    output: MessageResponse,
    errors: ['forbidden', 'rate_limited', 'unavailable'],
  },
  'secondFactor.get': {
    ...OF_USER,
    tag: 'users',
    summary: 'Whether the user has a second factor, and how many recovery codes are left',
    method: 'GET',
    path: '/users/me/second-factor',
    body: null,
    output: strictObject({ is_on: Type.Boolean(), recovery_codes_left: Type.Integer() }),
    errors: [],
  },
  'secondFactor.begin': {
    ...OF_USER,
    tag: 'users',
    summary: 'Get a new secret for an authenticator app; it counts once a code of it was given',
    method: 'POST',
    path: '/users/me/second-factor',
    body: NO_FIELDS,
    output: strictObject({
      uri: nullable(Type.String(), {
        description:
          'Shown once: the `otpauth://totp/…` address that a QR code for an authenticator app holds, with the secret in it',
      }),
    }),
    secretField: 'uri',
    errors: ['invalid_state_transition'],
  },
  'secondFactor.confirm': {
    ...OF_USER,
    tag: 'users',
    summary: 'Turn the second factor on with a code of it',
    method: 'PUT',
    path: '/users/me/second-factor',
    body: strictObject({ code: Code }),
    output: strictObject({
      recovery_codes: nullable(Type.Array(Type.String()), {
        description: 'Shown once: each replaces a code of the app, once',
      }),
    }),
    secretField: 'recovery_codes',
    errors: ['invalid_state_transition', 'rate_limited'],
  },
  'secondFactor.remove': {
    ...OF_USER,
    tag: 'users',
    summary: 'Turn the second factor off with a code of it',
    method: 'DELETE',
    path: '/users/me/second-factor',
    body: strictObject({ code: Code }),
    output: MessageResponse,
    errors: ['invalid_state_transition', 'rate_limited'],
  },
} as const satisfies Record<string, RestOperation>;
