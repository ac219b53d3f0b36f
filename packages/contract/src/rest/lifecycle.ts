import { Type } from '../schema/type.ts';
import { MAX_DURATION_SECS } from '../spec/sandbox-spec.ts';
import { strictObject } from '../spec/strict.ts';
import { NO_FIELDS, optional, Uuid } from './fields.ts';
import type { RestOperation } from './rest-operation.ts';
import { Sandbox } from './sandbox-fields.ts';

const Seconds = Type.Integer({ minimum: 1, maximum: MAX_DURATION_SECS });

const COMMON = {
  tag: 'sandboxes',
  audience: 'both',
  role: 'member',
  params: strictObject({ sandbox_id: Uuid }),
  query: NO_FIELDS,
  headers: NO_FIELDS,
  output: Sandbox,
  status: 200,
} as const;

export const lifecycleOperations = {
  'lifecycle.update': {
    ...COMMON,
    summary: 'Change how long a sandbox may run and be idle, at once and for its next runs',
    method: 'PATCH',
    path: '/sandboxes/{sandbox_id}/lifecycle',
    body: strictObject({
      max_duration_secs: Type.Optional(
        Type.Union([Seconds, Type.Null()], {
          description: 'From the start of a run; null: without an end; absent: as it was',
        }),
      ),
      idle_timeout_secs: Type.Optional(
        Type.Union([Seconds, Type.Null()], {
          description: 'Time without a user; null: for ever; absent: as it was',
        }),
      ),
      ends_in_secs: optional(Seconds, {
        description:
          'From now; sets max_duration_secs of a sandbox that runs accordingly. Not together with max_duration_secs',
      }),
    }),
    errors: [
      'sandbox_not_found',
      'invalid_state_transition',
      'precondition_failed',
      'orchestrator_unreachable',
    ],
  },
  'lifecycle.keepAlive': {
    ...COMMON,
    summary: 'Count as use of a sandbox: its idle time begins anew',
    method: 'POST',
    path: '/sandboxes/{sandbox_id}/keep-alive',
    body: null,
    errors: ['sandbox_not_found', 'sandbox_not_running', 'unavailable', 'orchestrator_unreachable'],
  },
} as const satisfies Record<string, RestOperation>;
