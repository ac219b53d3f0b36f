import { Type } from '../schema/type.ts';
import { strictObject } from '../spec/strict.ts';
import { MessageResponse, NO_FIELDS, nullable, Timestamp, Uuid } from './fields.ts';
import { DisplayName } from './organization-fields.ts';
import type { RestOperation } from './rest-operation.ts';

const SshKey = strictObject({
  id: Uuid,
  name: Type.String(),
  public_key: Type.String({ description: 'Type and key, without a comment' }),
  fingerprint: Type.String({ description: 'As `ssh-keygen -l` shows it: SHA256:…' }),
  created_at: Timestamp,
  last_used_at: nullable(Timestamp, { description: 'To the minute' }),
});

const COMMON = {
  tag: 'ssh keys',
  audience: 'user',
  role: 'member',
  params: NO_FIELDS,
  query: NO_FIELDS,
  headers: NO_FIELDS,
  status: 200,
} as const;

export const sshKeyOperations = {
  'sshKeys.list': {
    ...COMMON,
    summary: 'List the SSH keys of the user, newest first',
    method: 'GET',
    path: '/users/me/ssh-keys',
    body: null,
    output: Type.Array(SshKey),
    errors: [],
  },
  'sshKeys.create': {
    ...COMMON,
    summary: 'Let a key into the sandboxes of every organization that the user is a member of',
    method: 'POST',
    path: '/users/me/ssh-keys',
    body: strictObject({
      name: DisplayName,
      public_key: Type.String({
        minLength: 1,
        maxLength: 16_384,
        description: 'A line of an OpenSSH .pub file: ed25519, ECDSA, or RSA with at least 2048 bits',
      }),
    }),
    output: SshKey,
    errors: ['name_already_exists', 'quota_exceeded'],
  },
  'sshKeys.remove': {
    ...COMMON,
    summary: 'Revoke an SSH key of the user; sessions that it opened end within a minute',
    method: 'DELETE',
    path: '/users/me/ssh-keys/{id}',
    params: strictObject({ id: Uuid }),
    body: null,
    output: MessageResponse,
    errors: ['not_found'],
  },
} as const satisfies Record<string, RestOperation>;
