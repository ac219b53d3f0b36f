import { Type } from '../schema/type.ts';
import { strictObject } from '../spec/strict.ts';
import { NO_FIELDS, optional } from './fields.ts';
import { EVENT_STREAM, type RestOperation } from './rest-operation.ts';
import { RegistryChoice } from './sandbox-fields.ts';

/** The data of the `done` event of a pull. */
export interface PulledImage {
  /** As it was asked for. */
  readonly reference: string;
  /** Of its manifest; null when it came from no registry. */
  readonly digest: string | null;
  /** Unpacked. */
  readonly size_bytes: number;
}

export const imageOperations = {
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
