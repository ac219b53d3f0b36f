import { Type } from '../schema/type.ts';
import { strictObject } from '../spec/strict.ts';
import { MessageResponse, NO_FIELDS, PAGE_QUERY, pageOf, Uuid } from './fields.ts';
import { Process, ResizeRequest, SignalRequest, StartProcessRequest } from './process-fields.ts';
import { BYTES, EVENT_STREAM, type RestOperation } from './rest-operation.ts';

const OF_SANDBOX = strictObject({ sandbox_id: Uuid });
const OF_PROCESS = strictObject({
  sandbox_id: Uuid,
  process_id: Type.String({
    minLength: 1,
    maxLength: 64,
    description: 'Id, or name: then the latest of that name',
  }),
});

/** `N` of one stream, `N-M` of both. */
const Offset = Type.String({ pattern: '^\\d{1,15}(-\\d{1,15})?$' });

const COMMON = {
  tag: 'processes',
  audience: 'both',
  role: 'member',
  query: NO_FIELDS,
  headers: NO_FIELDS,
  body: null,
  status: 200,
} as const;
const REACH_ERRORS = ['sandbox_not_found', 'orchestrator_unreachable', 'unavailable'] as const;
const RUNNING_ERRORS = [...REACH_ERRORS, 'process_not_found', 'sandbox_not_running'] as const;

export const processOperations = {
  'processes.start': {
    ...COMMON,
    summary: 'Start a process that runs on when its client goes away',
    method: 'POST',
    path: '/sandboxes/{sandbox_id}/processes',
    params: OF_SANDBOX,
    body: StartProcessRequest,
    output: Process,
    errors: [
      ...REACH_ERRORS,
      'sandbox_not_running',
      'name_already_exists',
      'exec_failed',
      'payload_too_large',
    ],
  },
  'processes.list': {
    ...COMMON,
    summary: 'List the processes that were started here, newest first; also those that ended',
    method: 'GET',
    path: '/sandboxes/{sandbox_id}/processes',
    params: OF_SANDBOX,
    query: strictObject({
      ...PAGE_QUERY,
      status: Type.Optional(Type.Enum(['running', 'exited'])),
    }),
    output: pageOf(Process),
    errors: ['sandbox_not_found', 'invalid_cursor'],
  },
  'processes.get': {
    ...COMMON,
    summary: 'Get a process; one that ended keeps its reason, also when its sandbox has stopped',
    method: 'GET',
    path: '/sandboxes/{sandbox_id}/processes/{process_id}',
    params: OF_PROCESS,
    output: Process,
    errors: ['sandbox_not_found', 'process_not_found'],
  },
  'processes.remove': {
    ...COMMON,
    summary: 'Kill a process if it runs, and forget it with its output',
    method: 'DELETE',
    path: '/sandboxes/{sandbox_id}/processes/{process_id}',
    params: OF_PROCESS,
    output: MessageResponse,
    errors: [...REACH_ERRORS, 'process_not_found'],
  },
  'processes.signal': {
    ...COMMON,
    summary: 'Send a signal to a process and all that it started in its group',
    method: 'POST',
    path: '/sandboxes/{sandbox_id}/processes/{process_id}/signal',
    params: OF_PROCESS,
    body: SignalRequest,
    output: Process,
    errors: [...RUNNING_ERRORS, 'invalid_state_transition'],
  },
  'processes.writeStdin': {
    ...COMMON,
    summary: 'Write bytes to the input of a process; the answer comes when it has taken them',
    method: 'POST',
    path: '/sandboxes/{sandbox_id}/processes/{process_id}/stdin',
    params: OF_PROCESS,
    query: strictObject({
      close: Type.Optional(Type.Boolean({ default: false, description: 'Nothing more will come' })),
    }),
    body: BYTES,
    output: strictObject({ bytes: Type.Integer({ description: 'How many were taken' }) }),
    errors: [...RUNNING_ERRORS, 'invalid_state_transition'],
  },
  'processes.resize': {
    ...COMMON,
    summary: 'Change the size of the terminal of a process',
    method: 'POST',
    path: '/sandboxes/{sandbox_id}/processes/{process_id}/resize',
    params: OF_PROCESS,
    body: ResizeRequest,
    output: Process,
    errors: [...RUNNING_ERRORS, 'invalid_state_transition'],
  },
  'processes.output': {
    ...COMMON,
    summary: 'Stream the output of a process by byte offset: events `output`, `dropped`, and `end` last',
    method: 'GET',
    path: '/sandboxes/{sandbox_id}/processes/{process_id}/output',
    params: OF_PROCESS,
    query: strictObject({
      stream: Type.Optional(
        Type.Enum(['stdout', 'stderr', 'output'], { default: 'output', description: 'output: both' }),
      ),
      offset: Type.Optional(Offset),
      follow: Type.Optional(Type.Boolean({ default: false, description: 'Go on until the process ends' })),
    }),
    headers: strictObject({
      'last-event-id': Type.Optional(
        Type.String({ maxLength: 64, description: 'Id of the last event that was seen' }),
      ),
    }),
    output: EVENT_STREAM,
    errors: ['sandbox_not_found', 'process_not_found', 'rate_limited', 'unavailable'],
  },
} as const satisfies Record<string, RestOperation>;
