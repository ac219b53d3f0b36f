import { Type } from '../schema/type.ts';
import { strictObject } from '../spec/strict.ts';
import { MessageResponse, NO_FIELDS, Timestamp, Uuid } from './fields.ts';
import type { RestOperation } from './rest-operation.ts';

const Registry = strictObject({
  id: Uuid,
  registry_host: Type.String({ description: 'Docker Hub is `docker.io`, under each of its names' }),
  username: Type.String(),
  created_at: Timestamp,
  updated_at: Timestamp,
});

const COMMON = {
  tag: 'registries',
  audience: 'user',
  query: NO_FIELDS,
  headers: NO_FIELDS,
  status: 200,
} as const;

export const registryOperations = {
  'registries.list': {
    ...COMMON,
    summary: 'List the registries that the organization has a password for',
    method: 'GET',
    path: '/orgs/{slug}/registries',
    role: 'member',
    params: NO_FIELDS,
    body: null,
    output: Type.Array(Registry),
    errors: ['forbidden'],
  },
  'registries.put': {
    ...COMMON,
    summary: 'Set the user name and password for a registry; the password is never shown again',
    method: 'PUT',
    path: '/orgs/{slug}/registries',
    role: 'admin',
    params: NO_FIELDS,
    body: strictObject({
      registry_host: Type.String({
        minLength: 1,
        maxLength: 255,
        description: 'A host with an optional port',
      }),
      username: Type.String({
        minLength: 1,
        maxLength: 1024,
        pattern: '^[^\\u0000-\\u001f\\u007f]+$',
        description: 'On one line, without characters that control something',
      }),
      password: Type.String({ minLength: 1, maxLength: 16_384 }),
    }),
    output: Registry,
    errors: ['forbidden'],
  },
  'registries.remove': {
    ...COMMON,
    summary: 'Forget the password for a registry',
    method: 'DELETE',
    path: '/orgs/{slug}/registries/{id}',
    role: 'admin',
    params: strictObject({ id: Uuid }),
    body: null,
    output: MessageResponse,
    errors: ['forbidden', 'not_found'],
  },
} as const satisfies Record<string, RestOperation>;
