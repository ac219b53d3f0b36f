import { Type } from '../schema/type.ts';
import { strictObject } from '../spec/strict.ts';
import { MessageResponse, NO_FIELDS, nullable, PAGE_QUERY, pageOf, Timestamp, Uuid } from './fields.ts';
import { Email, OrganizationSlug, OrganizationWithRole, RoleName } from './organization-fields.ts';
import type { RestOperation } from './rest-operation.ts';

const Member = strictObject({
  user_id: Uuid,
  email: Type.String(),
  display_name: nullable(Type.String()),
  avatar_url: nullable(Type.String()),
  role: RoleName,
  joined_at: Timestamp,
});

const INVITE = {
  id: Uuid,
  email: Type.String(),
  role: RoleName,
  invited_by: Uuid,
  created_at: Timestamp,
  expires_at: Timestamp,
};
const Invite = strictObject(INVITE);

/** What the invited person sees, who may have no account yet: the token is the credential. */
const InviteToAnswer = strictObject({
  organization: strictObject({ slug: OrganizationSlug, name: Type.String() }),
  invited_by: strictObject({ display_name: nullable(Type.String()), email: Type.String() }),
  email: Type.String({ description: 'The address that it was sent to' }),
  role: RoleName,
  expires_at: Timestamp,
});

const OF_MEMBER = strictObject({ user_id: Uuid });
const OF_TOKEN = strictObject({ token: Type.String({ minLength: 1, maxLength: 256 }) });
const COMMON = {
  tag: 'members',
  audience: 'user',
  query: NO_FIELDS,
  headers: NO_FIELDS,
  status: 200,
} as const;

export const memberOperations = {
  'members.list': {
    ...COMMON,
    summary: 'List the members of the organization, in the order they joined',
    method: 'GET',
    path: '/members',
    audience: 'both',
    role: 'member',
    params: NO_FIELDS,
    query: strictObject(PAGE_QUERY),
    body: null,
    output: pageOf(Member),
    errors: ['invalid_cursor'],
  },
  'members.update': {
    ...COMMON,
    summary: 'Change the role of a member; only owners make and unmake owners',
    method: 'PATCH',
    path: '/orgs/{slug}/members/{user_id}',
    role: 'admin',
    params: OF_MEMBER,
    body: strictObject({ role: RoleName }),
    output: Member,
    errors: ['forbidden', 'not_found'],
  },
  'members.remove': {
    ...COMMON,
    summary: 'Remove a member; API keys that they made for the organization stay valid',
    method: 'DELETE',
    path: '/orgs/{slug}/members/{user_id}',
    role: 'admin',
    params: OF_MEMBER,
    body: null,
    output: MessageResponse,
    errors: ['forbidden', 'not_found'],
  },
  'invites.list': {
    ...COMMON,
    summary: 'List the open invites',
    method: 'GET',
    path: '/orgs/{slug}/invites',
    role: 'admin',
    params: NO_FIELDS,
    body: null,
    output: Type.Array(Invite),
    errors: ['forbidden'],
  },
  'invites.create': {
    ...COMMON,
    summary: 'Invite a person; a second invite to the same address replaces the first',
    method: 'POST',
    path: '/orgs/{slug}/invites',
    role: 'admin',
    params: NO_FIELDS,
    body: strictObject({ email: Email, role: Type.Optional(RoleName) }),
    output: strictObject({
      ...INVITE,
      token: nullable(Type.String(), { description: 'Shown once: what the invited person accepts with' }),
    }),
    secretField: 'token',
    errors: ['forbidden', 'quota_exceeded'],
  },
  'invites.remove': {
    ...COMMON,
    summary: 'Withdraw an invite',
    method: 'DELETE',
    path: '/orgs/{slug}/invites/{invite_id}',
    role: 'admin',
    params: strictObject({ invite_id: Uuid }),
    body: null,
    output: MessageResponse,
    errors: ['forbidden', 'not_found'],
  },
  'invites.get': {
    ...COMMON,
    summary: 'See what an invite is to, before it is answered',
    method: 'GET',
    path: '/invites/{token}',
    audience: 'anyone',
    role: 'member',
    params: OF_TOKEN,
    body: null,
    output: InviteToAnswer,
    errors: [],
  },
  'invites.accept': {
    ...COMMON,
    summary: 'Accept an invite to the address of the user',
    method: 'POST',
    path: '/invites/{token}/accept',
    role: 'member',
    params: OF_TOKEN,
    body: NO_FIELDS,
    output: OrganizationWithRole,
    errors: ['forbidden'],
  },
  'invites.decline': {
    ...COMMON,
    summary: 'Decline an invite to the address of the user',
    method: 'POST',
    path: '/invites/{token}/decline',
    role: 'member',
    params: OF_TOKEN,
    body: NO_FIELDS,
    output: MessageResponse,
    errors: ['forbidden'],
  },
} as const satisfies Record<string, RestOperation>;
