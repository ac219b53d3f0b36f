import { strictObject } from '../spec/strict.ts';
import { NO_FIELDS, Uuid } from './fields.ts';
import { EVENT_STREAM, type RestOperation } from './rest-operation.ts';

export const progressOperations = {
  'progress.follow': {
    summary:
      'Stream how a start goes: events `progress` with what is done and how far, then `end` with the status when it starts no longer',
    tag: 'sandboxes',
    method: 'GET',
    path: '/sandboxes/{sandbox_id}/progress',
    audience: 'both',
    role: 'member',
    params: strictObject({ sandbox_id: Uuid }),
    query: NO_FIELDS,
    headers: NO_FIELDS,
    body: null,
    output: EVENT_STREAM,
    status: 200,
    errors: ['sandbox_not_found'],
  },
} as const satisfies Record<string, RestOperation>;
