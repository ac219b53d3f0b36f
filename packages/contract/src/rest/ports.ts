import { Type } from '../schema/type.ts';
import { Port } from '../spec/published-port.ts';
import { strictObject } from '../spec/strict.ts';
import { MessageResponse, NO_FIELDS, nullable, optional, Timestamp, Uuid } from './fields.ts';
import type { RestOperation } from './rest-operation.ts';

const YEAR_SECONDS = 366 * 24 * 60 * 60;

const PREVIEW = {
  id: Uuid,
  port: Port,
  url: Type.String({ description: 'Where a browser finds the port, with the token where one is needed' }),
  access: Type.Enum(['token', 'public'], {
    description: 'Who may use the port: clients with the token, or everybody',
  }),
  prefix: Type.String({
    description: 'The last 8 characters of the token, to recognize it by; empty when no token is needed',
  }),
  created_at: Timestamp,
  expires_at: nullable(Timestamp, { description: 'Null: never' }),
};

const COMMON = {
  tag: 'previews',
  audience: 'both',
  role: 'member',
  query: NO_FIELDS,
  headers: NO_FIELDS,
  status: 200,
} as const;
const OF_SANDBOX = strictObject({ sandbox_id: Uuid });

export const portOperations = {
  'previews.list': {
    ...COMMON,
    summary: 'List the previews of a sandbox that can be used, newest first',
    method: 'GET',
    path: '/sandboxes/{sandbox_id}/previews',
    params: OF_SANDBOX,
    body: null,
    output: Type.Array(strictObject(PREVIEW)),
    errors: ['sandbox_not_found'],
  },
  'previews.create': {
    ...COMMON,
    summary: 'Make a token with which a browser may use one port of a sandbox, or open the port to everybody',
    method: 'POST',
    path: '/sandboxes/{sandbox_id}/previews',
    params: OF_SANDBOX,
    body: strictObject({
      port: Port,
      expires_in_secs: optional(Type.Integer({ minimum: 1, maximum: YEAR_SECONDS }), {
        description: 'Absent or null: until it is revoked',
      }),
      public: optional(Type.Boolean(), {
        description:
          'True: everybody who can reach the address may use the port, without a token; then `expires_in_secs` is required',
      }),
    }),
    output: strictObject({
      ...PREVIEW,
      token: nullable(Type.String(), {
        description:
          'Shown once; sent as ?svc_preview_token= or in the header x-svc-preview-token. Null when none is needed',
      }),
    }),
    secretField: 'token',
    errors: ['sandbox_not_found', 'quota_exceeded', 'unavailable'],
  },
  'previews.open': {
    ...COMMON,
    summary: 'An address of one port of a sandbox that opens as it is, in a browser and in a program',
    method: 'POST',
    path: '/sandboxes/{sandbox_id}/previews/open',
    params: OF_SANDBOX,
    body: strictObject({
      port: Port,
      expires_in_secs: optional(Type.Integer({ minimum: 1, maximum: YEAR_SECONDS }), {
        description: 'For how long, where a token is needed; a day unless given',
      }),
    }),
    output: strictObject({
      port: Port,
      url: nullable(Type.String(), { description: 'Shown once, because it may hold a token' }),
      access: Type.Enum(['open', 'public', 'token'], {
        description:
          'Why it opens: everybody on the machine of this server may use it, everybody may, or its token is in it',
      }),
      preview_id: nullable(Uuid, { description: 'What to revoke; null without a token' }),
      expires_at: nullable(Timestamp, { description: 'Of the token' }),
    }),
    secretField: 'url',
    errors: ['sandbox_not_found', 'quota_exceeded', 'unavailable'],
  },
  'previews.revoke': {
    ...COMMON,
    summary: 'Revoke a preview, with a token or public; connections that it opened end within a minute',
    method: 'DELETE',
    path: '/sandboxes/{sandbox_id}/previews/{preview_id}',
    params: strictObject({ sandbox_id: Uuid, preview_id: Uuid }),
    body: null,
    output: MessageResponse,
    errors: ['sandbox_not_found', 'not_found'],
  },
} as const satisfies Record<string, RestOperation>;
