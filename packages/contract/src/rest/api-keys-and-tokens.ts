import { Type } from '../schema/type.ts';
import { strictObject } from '../spec/strict.ts';
import {
  MessageResponse,
  NO_FIELDS,
  nullable,
  optional,
  PAGE_QUERY,
  pageOf,
  Timestamp,
  TimestampInput,
  Uuid,
} from './fields.ts';
import { DisplayName } from './organization-fields.ts';
import type { RestOperation } from './rest-operation.ts';

const CREDENTIAL = {
  id: Uuid,
  name: Type.String(),
  prefix: Type.String({ description: 'The last 8 characters of the secret, to recognize it by' }),
  created_at: Timestamp,
  expires_at: nullable(Timestamp, { description: 'Null: never' }),
  last_used_at: nullable(Timestamp, { description: 'To the minute' }),
};
const API_KEY = {
  ...CREDENTIAL,
  created_by: nullable(Uuid, { description: 'Null: made on the command line of the server' }),
};

const NewCredential = strictObject({
  name: DisplayName,
  expires_at: optional(TimestampInput, { description: 'Absent or null: never' }),
});

const OF_CREDENTIAL = strictObject({ id: Uuid });
const COMMON = {
  audience: 'user',
  role: 'member',
  query: NO_FIELDS,
  headers: NO_FIELDS,
  status: 200,
} as const;
const OF_KEYS = { ...COMMON, tag: 'api keys' } as const;
const OF_TOKENS = { ...COMMON, tag: 'tokens' } as const;

export const credentialOperations = {
  'apiKeys.list': {
    ...OF_KEYS,
    summary: 'List API keys, newest first: all of them for admins, their own for members',
    method: 'GET',
    path: '/orgs/{slug}/api-keys',
    params: NO_FIELDS,
    query: strictObject(PAGE_QUERY),
    body: null,
    output: pageOf(strictObject(API_KEY)),
    errors: ['forbidden', 'invalid_cursor'],
  },
  'apiKeys.create': {
    ...OF_KEYS,
    summary: 'Create an API key of the organization',
    method: 'POST',
    path: '/orgs/{slug}/api-keys',
    params: NO_FIELDS,
    body: NewCredential,
    output: strictObject({ ...API_KEY, key: nullable(Type.String(), { description: 'Shown once' }) }),
    secretField: 'key',
    errors: ['forbidden', 'quota_exceeded'],
  },
  'apiKeys.revoke': {
    ...OF_KEYS,
    summary: 'Revoke an API key: any for admins, their own for members',
    method: 'DELETE',
    path: '/orgs/{slug}/api-keys/{id}',
    params: OF_CREDENTIAL,
    body: null,
    output: MessageResponse,
    errors: ['forbidden', 'not_found'],
  },
  'tokens.list': {
    ...OF_TOKENS,
    summary: 'List the personal access tokens of the user, newest first',
    method: 'GET',
    path: '/users/me/pats',
    params: NO_FIELDS,
    body: null,
    output: Type.Array(strictObject(CREDENTIAL)),
    errors: [],
  },
  'tokens.create': {
    ...OF_TOKENS,
    summary: 'Create a personal access token of the user',
    method: 'POST',
    path: '/users/me/pats',
    params: NO_FIELDS,
    body: NewCredential,
    output: strictObject({ ...CREDENTIAL, token: nullable(Type.String(), { description: 'Shown once' }) }),
    secretField: 'token',
    errors: ['quota_exceeded'],
  },
  'tokens.revoke': {
    ...OF_TOKENS,
    summary: 'Revoke a personal access token of the user',
    method: 'DELETE',
    path: '/users/me/pats/{id}',
    params: OF_CREDENTIAL,
    body: null,
    output: MessageResponse,
    errors: ['not_found'],
  },
} as const satisfies Record<string, RestOperation>;
