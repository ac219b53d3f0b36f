import { Type } from '../schema/type.ts';
import { strictObject } from '../spec/strict.ts';
import { MessageResponse, NO_FIELDS, optional, PAGE_QUERY, pageOf, Uuid } from './fields.ts';
import type { RestOperation } from './rest-operation.ts';
import {
  CreateSandboxRequest,
  Sandbox,
  SandboxName,
  SandboxSlug,
  SandboxVolumeMount,
} from './sandbox-fields.ts';

const BY_ID = strictObject({ sandbox_id: Uuid });
const BY_NAME = strictObject({ name: Type.String({ minLength: 1, maxLength: 512 }) });

/** `wait_timeout` without `wait_for` is refused by the handler. */
const WAIT_QUERY = {
  wait_for: Type.Optional(Type.Enum(['running'], { description: 'Hold the answer until it runs or fails' })),
  wait_timeout: Type.Optional(
    Type.Integer({ minimum: 0, description: 'Seconds to hold the answer at most; only with wait_for' }),
  ),
};

const RecoverBody = strictObject({
  action: Type.Enum(['wait', 'restart', 'stop'], {
    description: '`wait` for the host a while longer, `restart` with the disk as it is, or `stop`',
  }),
});

const COMMON = {
  tag: 'sandboxes',
  audience: 'both',
  role: 'member',
  headers: NO_FIELDS,
  status: 200,
} as const;
const START_ERRORS = [
  'sandbox_not_found',
  'invalid_state_transition',
  'precondition_failed',
  'quota_exceeded',
  'rate_limited',
  'insufficient_storage',
  'orchestrator_unreachable',
] as const;
const STOP_ERRORS = [
  'sandbox_not_found',
  'invalid_state_transition',
  'precondition_failed',
  'orchestrator_unreachable',
] as const;
const REMOVE_ERRORS = ['sandbox_not_found', 'precondition_failed', 'orchestrator_unreachable'] as const;
const RECOVER_ERRORS = ['sandbox_not_found', 'invalid_state_transition', 'precondition_failed'] as const;

export const sandboxOperations = {
  'sandboxes.list': {
    ...COMMON,
    summary: 'List sandboxes, newest first',
    method: 'GET',
    path: '/sandboxes',
    params: NO_FIELDS,
    query: strictObject({
      ...PAGE_QUERY,
      labels: Type.Optional(
        Type.String({ description: 'JSON object; a sandbox matches when it has all of these labels' }),
      ),
    }),
    body: null,
    output: pageOf(Sandbox),
    errors: ['invalid_cursor'],
  },
  'sandboxes.create': {
    ...COMMON,
    summary: 'Create a sandbox, and start it with start=true',
    method: 'POST',
    path: '/sandboxes',
    params: NO_FIELDS,
    query: strictObject({
      start: Type.Optional(
        Type.Boolean({ default: false, description: 'Without it the sandbox is only written down' }),
      ),
      ...WAIT_QUERY,
    }),
    body: CreateSandboxRequest,
    // Patches hold up to 16 MiB of text each, or 4 MiB of bytes, which take four times as much in JSON.
    maxBodyBytes: 24 * 2 ** 20,
    output: Sandbox,
    errors: [
      'invalid_sandbox_config',
      'network_ceiling_exceeded',
      'invalid_image',
      'isolation_unavailable',
      'name_already_exists',
      'volume_not_found',
      'snapshot_not_found',
      'quota_exceeded',
      'rate_limited',
      'insufficient_storage',
      'orchestrator_unreachable',
    ],
  },
  'sandboxes.getByName': {
    ...COMMON,
    summary: 'Get a sandbox by its name',
    method: 'GET',
    path: '/sandboxes/by-name/{name}',
    params: BY_NAME,
    query: NO_FIELDS,
    body: null,
    output: Sandbox,
    errors: ['sandbox_not_found'],
  },
  'sandboxes.removeByName': {
    ...COMMON,
    summary: 'Stop and permanently destroy the sandbox of this name',
    method: 'DELETE',
    path: '/sandboxes/by-name/{name}',
    params: BY_NAME,
    query: NO_FIELDS,
    body: null,
    output: MessageResponse,
    errors: REMOVE_ERRORS,
  },
  'sandboxes.startByName': {
    ...COMMON,
    summary: 'Start the sandbox of this name',
    method: 'POST',
    path: '/sandboxes/by-name/{name}/start',
    params: BY_NAME,
    query: strictObject(WAIT_QUERY),
    body: NO_FIELDS,
    output: Sandbox,
    errors: START_ERRORS,
  },
  'sandboxes.stopByName': {
    ...COMMON,
    summary: 'Stop the sandbox of this name; its disk is kept',
    method: 'POST',
    path: '/sandboxes/by-name/{name}/stop',
    params: BY_NAME,
    query: NO_FIELDS,
    body: NO_FIELDS,
    output: Sandbox,
    errors: STOP_ERRORS,
  },
  'sandboxes.recoverByName': {
    ...COMMON,
    summary: 'Choose how the sandbox of this name goes on after an outage',
    method: 'POST',
    path: '/sandboxes/by-name/{name}/recover',
    params: BY_NAME,
    query: NO_FIELDS,
    body: RecoverBody,
    output: Sandbox,
    errors: RECOVER_ERRORS,
  },
  'sandboxes.get': {
    ...COMMON,
    summary: 'Get a sandbox',
    method: 'GET',
    path: '/sandboxes/{sandbox_id}',
    params: BY_ID,
    query: NO_FIELDS,
    body: null,
    output: Sandbox,
    errors: ['sandbox_not_found'],
  },
  'sandboxes.volumes': {
    ...COMMON,
    summary: 'List the volumes that a sandbox mounts',
    method: 'GET',
    path: '/sandboxes/{sandbox_id}/volumes',
    params: BY_ID,
    query: NO_FIELDS,
    body: null,
    output: Type.Array(SandboxVolumeMount),
    errors: ['sandbox_not_found'],
  },
  'sandboxes.update': {
    ...COMMON,
    summary: 'Change the name or slug of a sandbox',
    method: 'PATCH',
    path: '/sandboxes/{sandbox_id}',
    params: BY_ID,
    query: NO_FIELDS,
    body: strictObject({ name: optional(SandboxName), slug: optional(SandboxSlug) }),
    output: Sandbox,
    errors: ['sandbox_not_found', 'name_already_exists', 'precondition_failed'],
  },
  'sandboxes.remove': {
    ...COMMON,
    summary: 'Stop and permanently destroy a sandbox',
    method: 'DELETE',
    path: '/sandboxes/{sandbox_id}',
    params: BY_ID,
    query: NO_FIELDS,
    body: null,
    output: MessageResponse,
    errors: REMOVE_ERRORS,
  },
  'sandboxes.start': {
    ...COMMON,
    summary: 'Start a sandbox',
    method: 'POST',
    path: '/sandboxes/{sandbox_id}/start',
    params: BY_ID,
    query: strictObject(WAIT_QUERY),
    body: NO_FIELDS,
    output: Sandbox,
    errors: START_ERRORS,
  },
  'sandboxes.stop': {
    ...COMMON,
    summary: 'Stop a sandbox; its disk is kept',
    method: 'POST',
    path: '/sandboxes/{sandbox_id}/stop',
    params: BY_ID,
    query: NO_FIELDS,
    body: NO_FIELDS,
    output: Sandbox,
    errors: STOP_ERRORS,
  },
  'sandboxes.recover': {
    ...COMMON,
    summary: 'Choose how a sandbox goes on after an outage',
    method: 'POST',
    path: '/sandboxes/{sandbox_id}/recover',
    params: BY_ID,
    query: NO_FIELDS,
    body: RecoverBody,
    output: Sandbox,
    errors: RECOVER_ERRORS,
  },
} as const satisfies Record<string, RestOperation>;
