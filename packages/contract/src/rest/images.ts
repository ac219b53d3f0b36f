import { Type } from '../schema/type.ts';
import { strictObject } from '../spec/strict.ts';
import type { Static } from 'typebox';
import { MessageResponse, NO_FIELDS, nullable, optional, Timestamp } from './fields.ts';
import { EVENT_STREAM, type RestOperation } from './rest-operation.ts';
import { RegistryChoice } from './sandbox-fields.ts';

const Reference = Type.String({ minLength: 1, maxLength: 512, description: 'A name or an id of the image' });

const ImageView = strictObject({
  id: Type.String({ description: '`sha256:…`: names its content' }),
  digest: nullable(Type.String(), { description: 'Of its manifest; null when it came from no registry' }),
  references: Type.Array(Type.String(), { description: 'The names that lead to it' }),
  size_bytes: Type.Integer({ description: 'Unpacked' }),
  created_at: Timestamp,
  last_used_at: nullable(Timestamp, {
    description: 'By the organization, to within the hour; null for an image that the operator provides',
  }),
  is_provided: Type.Boolean({
    description: 'By the operator: it counts for no organization and cannot be removed here',
  }),
  in_use: Type.Boolean({ description: 'By a sandbox or a snapshot of the organization' }),
});
export type ImageView = Static<typeof ImageView>;

const COMMON = {
  tag: 'images',
  audience: 'both',
  role: 'member',
  query: NO_FIELDS,
  headers: NO_FIELDS,
  body: null,
  status: 200,
} as const;

export const imageOperations = {
  'images.list': {
    ...COMMON,
    summary: 'List the images that the organization has pulled or used, and those that the operator provides',
    method: 'GET',
    path: '/images',
    params: NO_FIELDS,
    output: Type.Array(ImageView),
    errors: ['orchestrator_unreachable'],
  },
  'images.remove': {
    ...COMMON,
    summary:
      'Remove an image from the organization, with all its names; it is deleted when no other organization has it. What uses it is removed first',
    method: 'DELETE',
    path: '/images/{reference}',
    params: strictObject({ reference: Reference }),
    output: MessageResponse,
    errors: ['image_not_found', 'image_in_use', 'invalid_image', 'orchestrator_unreachable'],
  },
  'images.pull': {
    summary:
      'Pull an image for the sandboxes of the organization: events `progress`, then `done` with the image, or `error` with the usual envelope. An image that needs a password stays with the organization that has it',
    tag: 'images',
    method: 'POST',
    path: '/images/pull',
    audience: 'both',
    role: 'member',
    params: NO_FIELDS,
    query: NO_FIELDS,
    headers: NO_FIELDS,
    body: strictObject({
      reference: Type.String({ minLength: 1, maxLength: 512 }),
      pull_policy: Type.Optional(
        Type.Enum(['if_missing', 'always', 'never'], {
          default: 'always',
          description: 'Whether to ask the registry',
        }),
      ),
      registry: optional(RegistryChoice, { description: 'As in the create of a sandbox' }),
    }),
    output: EVENT_STREAM,
    status: 200,
    errors: ['invalid_sandbox_config', 'insufficient_storage', 'orchestrator_unreachable'],
  },
} as const satisfies Record<string, RestOperation>;
