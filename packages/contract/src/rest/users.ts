import { Type } from '../schema/type.ts';
import { strictObject } from '../spec/strict.ts';
import { MessageResponse, NO_FIELDS, nullable, optional, Timestamp, Uuid } from './fields.ts';
import { DisplayName } from './organization-fields.ts';
import type { RestOperation } from './rest-operation.ts';

export const User = strictObject({
  id: Uuid,
  email: Type.String(),
  display_name: nullable(Type.String()),
  avatar_url: nullable(Type.String()),
  created_at: Timestamp,
  updated_at: Timestamp,
});

const COMMON = {
  tag: 'users',
  path: '/users/me',
  audience: 'user',
  role: 'member',
  params: NO_FIELDS,
  query: NO_FIELDS,
  headers: NO_FIELDS,
  status: 200,
} as const;

export const userOperations = {
  'users.get': {
    ...COMMON,
    summary: 'Get the user',
    takesLimitedSession: true,
    method: 'GET',
    body: null,
    output: User,
    errors: [],
  },
  'users.update': {
    ...COMMON,
    summary: 'Change the name or picture of the user; null removes it',
    method: 'PATCH',
    body: strictObject({
      display_name: optional(DisplayName),
      avatar_url: optional(
        Type.String({
          pattern: '^https://[\\x21-\\x7e]{1,2000}$',
          description: 'An address that begins with https://',
        }),
      ),
    }),
    output: User,
    errors: [],
  },
  'users.remove': {
    ...COMMON,
    summary:
      'Delete the user with their tokens and memberships; their address confirms it, and their password or a code of their second factor that it is them',
    method: 'DELETE',
    body: strictObject({
      confirm: Type.String({ description: 'The e-mail address of the user' }),
      current_password: Type.Optional(
        Type.String({
          minLength: 1,
          maxLength: 1024,
          description: 'Of who has one; a code of their second factor does as well',
        }),
      ),
      code: Type.Optional(
        Type.String({
          minLength: 6,
          maxLength: 32,
          description: 'Of the authenticator app, or a recovery code',
        }),
      ),
    }),
    output: MessageResponse,
    errors: ['forbidden', 'rate_limited', 'unavailable'],
  },
} as const satisfies Record<string, RestOperation>;
