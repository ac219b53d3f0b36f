import { Type } from '../schema/type.ts';
import { strictObject } from '../spec/strict.ts';
import { CodeAnswer, CodeContext, CreateContextRequest, RunCodeRequest } from './code-fields.ts';
import { MessageResponse, NO_FIELDS, Uuid } from './fields.ts';
import { EVENT_STREAM, type RestOperation } from './rest-operation.ts';

const OF_SANDBOX = strictObject({ sandbox_id: Uuid });
const OF_CONTEXT = strictObject({
  sandbox_id: Uuid,
  context_id: Type.String({ minLength: 1, maxLength: 128, description: 'Id or name' }),
});

const COMMON = {
  tag: 'code',
  audience: 'both',
  role: 'member',
  query: NO_FIELDS,
  headers: NO_FIELDS,
  body: null,
  status: 200,
} as const;
const RUNNING_ERRORS = ['sandbox_not_found', 'sandbox_not_running'] as const;
const CONTEXT_ERRORS = [...RUNNING_ERRORS, 'context_not_found', 'context_lost'] as const;
const REACH_ERRORS = ['exec_failed', 'orchestrator_unreachable', 'unavailable', 'payload_too_large'] as const;

export const codeOperations = {
  'code.run': {
    ...COMMON,
    summary: 'Run code in an interpreter that keeps its state, and answer when it has ended',
    method: 'POST',
    path: '/sandboxes/{sandbox_id}/code',
    params: OF_SANDBOX,
    body: RunCodeRequest,
    output: CodeAnswer,
    errors: [...CONTEXT_ERRORS, ...REACH_ERRORS],
  },
  'code.stream': {
    ...COMMON,
    summary:
      'Run code and stream what it prints and shows: events `stdout` and `stderr` with `text`, `result` with what `results` would have, and last `end`, or `error` when it could not be run',
    method: 'POST',
    path: '/sandboxes/{sandbox_id}/code/stream',
    params: OF_SANDBOX,
    body: RunCodeRequest,
    output: EVENT_STREAM,
    errors: [...CONTEXT_ERRORS, ...REACH_ERRORS],
  },
  'contexts.create': {
    ...COMMON,
    summary: 'Start an interpreter whose state no other context sees',
    method: 'POST',
    path: '/sandboxes/{sandbox_id}/contexts',
    params: OF_SANDBOX,
    body: CreateContextRequest,
    output: CodeContext,
    errors: [...RUNNING_ERRORS, ...REACH_ERRORS, 'name_already_exists', 'quota_exceeded'],
  },
  'contexts.list': {
    ...COMMON,
    summary: 'List the code contexts of a sandbox, oldest first; the default ones are not among them',
    method: 'GET',
    path: '/sandboxes/{sandbox_id}/contexts',
    params: OF_SANDBOX,
    output: Type.Array(CodeContext),
    errors: ['sandbox_not_found'],
  },
  'contexts.get': {
    ...COMMON,
    summary: 'Get a code context',
    method: 'GET',
    path: '/sandboxes/{sandbox_id}/contexts/{context_id}',
    params: OF_CONTEXT,
    output: CodeContext,
    errors: CONTEXT_ERRORS,
  },
  'contexts.interrupt': {
    ...COMMON,
    summary: 'Interrupt what runs in a context, as Ctrl-C does; the state is kept',
    method: 'POST',
    path: '/sandboxes/{sandbox_id}/contexts/{context_id}/interrupt',
    params: OF_CONTEXT,
    output: CodeContext,
    errors: CONTEXT_ERRORS,
  },
  'contexts.restart': {
    ...COMMON,
    summary: 'Kill the interpreter of a context; the next code finds a new one, started in the same way',
    method: 'POST',
    path: '/sandboxes/{sandbox_id}/contexts/{context_id}/restart',
    params: OF_CONTEXT,
    output: CodeContext,
    errors: CONTEXT_ERRORS,
  },
  'contexts.remove': {
    ...COMMON,
    summary: 'Kill the interpreter of a context and forget it',
    method: 'DELETE',
    path: '/sandboxes/{sandbox_id}/contexts/{context_id}',
    params: OF_CONTEXT,
    output: MessageResponse,
    errors: CONTEXT_ERRORS,
  },
} as const satisfies Record<string, RestOperation>;
