import { Type } from '../schema/type.ts';
import { strictObject } from '../spec/strict.ts';
import { NO_FIELDS, nullable, PAGE_QUERY, pageOf, Timestamp, TimestampInput, Uuid } from './fields.ts';
import type { RestOperation } from './rest-operation.ts';

const Actor = Type.Union([
  strictObject({
    kind: Type.Literal('user'),
    user_id: Uuid,
    label: Type.String(),
    redacted_email: Type.String(),
  }),
  strictObject({ kind: Type.Literal('api_key'), api_key_id: Type.String(), name: Type.String() }),
  strictObject({ kind: Type.Literal('system'), code: Type.String(), label: Type.String() }),
  strictObject({
    kind: Type.Literal('ssh_key'),
    key_id: Type.String(),
    fingerprint: Type.String(),
    label: nullable(Type.String()),
  }),
]);

/** An audit event. The events of an organization form a chain: each names the hash of the one before. */
const Event = strictObject({
  id: Uuid,
  org_id: Uuid,
  sequence: Type.Integer({ description: 'Counts the events of the organization from 1, without gaps' }),
  category: Type.String({ description: 'The resource' }),
  event_type: Type.String({ description: '`<resource>_<past participle>`' }),
  actor: Actor,
  payload: Type.Unknown(),
  request_id: nullable(Type.String()),
  source_address: nullable(Type.String()),
  timestamp: Timestamp,
  previous_hash: Type.String({ description: 'Empty in the first event' }),
  hash: Type.String({ description: 'SHA-256 over every other field' }),
});

const COMMON = {
  tag: 'events',
  method: 'GET',
  audience: 'both',
  role: 'admin',
  headers: NO_FIELDS,
  body: null,
  status: 200,
} as const;

export const eventOperations = {
  'events.list': {
    ...COMMON,
    summary: 'List audit events, newest first',
    path: '/events',
    params: NO_FIELDS,
    query: strictObject({
      ...PAGE_QUERY,
      event_type: Type.Optional(Type.String({ minLength: 1, maxLength: 128 })),
      sandbox_id: Type.Optional(Uuid),
      since: Type.Optional(TimestampInput),
      until: Type.Optional(TimestampInput),
    }),
    output: pageOf(Event),
    errors: ['invalid_cursor'],
  },
  'events.get': {
    ...COMMON,
    summary: 'Get an audit event',
    path: '/events/{event_id}',
    params: strictObject({ event_id: Uuid }),
    query: NO_FIELDS,
    output: Event,
    errors: ['event_not_found'],
  },
} as const satisfies Record<string, RestOperation>;
