import { Type } from '../schema/type.ts';
import { Certificates } from '../spec/network-tls.ts';
import { MAX_HOSTS, NamedHost, SecretName, SecretValue } from '../spec/secrets.ts';
import { strictObject } from '../spec/strict.ts';
import { MessageResponse, NO_FIELDS, Timestamp } from './fields.ts';
import type { RestOperation } from './rest-operation.ts';

const AllowedHosts = Type.Array(NamedHost, {
  minItems: 1,
  maxItems: MAX_HOSTS,
  description: 'Who may be sent the value; a sandbox that refers to the secret may name fewer, not others',
});
const Authorities = Type.Array(Certificates, {
  maxItems: 16,
  description:
    'Authorities (PEM) beside those that the host of the engine trusts which a sandbox that refers to the secret may trust',
});

const Secret = strictObject({
  name: SecretName,
  allowed_hosts: AllowedHosts,
  upstream_ca_cert: Authorities,
  created_at: Timestamp,
  updated_at: Timestamp,
});

const COMMON = {
  tag: 'secrets',
  audience: 'user',
  query: NO_FIELDS,
  headers: NO_FIELDS,
  status: 200,
} as const;

export const secretOperations = {
  'secrets.list': {
    ...COMMON,
    summary: 'List the secrets of the organization by name, without their values',
    method: 'GET',
    path: '/orgs/{slug}/secrets',
    role: 'member',
    params: NO_FIELDS,
    body: null,
    output: Type.Array(Secret),
    errors: ['forbidden'],
  },
  'secrets.put': {
    ...COMMON,
    summary:
      'Set a secret; sandboxes that use it have the new value and hosts within seconds. It is never shown again',
    method: 'PUT',
    path: '/orgs/{slug}/secrets/{name}',
    role: 'admin',
    params: strictObject({ name: SecretName }),
    body: strictObject({
      value: Type.String({ ...SecretValue, minLength: 1 }),
      allowed_hosts: AllowedHosts,
      upstream_ca_cert: Type.Optional(Authorities),
    }),
    output: Secret,
    errors: ['forbidden', 'quota_exceeded'],
  },
  'secrets.remove': {
    ...COMMON,
    summary: 'Forget a secret that no sandbox refers to',
    method: 'DELETE',
    path: '/orgs/{slug}/secrets/{name}',
    role: 'admin',
    params: strictObject({ name: SecretName }),
    body: null,
    output: MessageResponse,
    errors: ['forbidden', 'not_found', 'invalid_state_transition'],
  },
} as const satisfies Record<string, RestOperation>;
