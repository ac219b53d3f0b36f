import { Type } from '../schema/type.ts';
import { strictObject } from '../spec/strict.ts';
import { EVENT_PATTERNS } from './event-types.ts';
import {
  MessageResponse,
  NO_FIELDS,
  nullable,
  optional,
  PAGE_QUERY,
  pageOf,
  Timestamp,
  Uuid,
} from './fields.ts';
import type { RestOperation } from './rest-operation.ts';

const WEEK_SECONDS = 7 * 24 * 60 * 60;

const FIELDS = {
  url: Type.String({
    pattern: '^https?://[\\x21-\\x7e]{1,2000}$',
    description: 'Where events are posted to; https, and a public address unless the operator allows others',
  }),
  description: Type.String({ maxLength: 200, description: 'For people' }),
  event_types: Type.Array(Type.Enum(EVENT_PATTERNS), {
    minItems: 1,
    maxItems: 100,
    description: 'A type such as sandbox_ending, all of a category such as sandbox.*, or * for everything',
  }),
  enabled: Type.Boolean({ description: 'Nothing is sent, and no delivery is made, while it is not' }),
};

const Webhook = strictObject({
  id: Uuid,
  ...FIELDS,
  disabled_reason: nullable(Type.String(), { description: 'Why the server disabled it; null: it did not' }),
  failing_since: nullable(Timestamp, {
    description: 'Since then every attempt failed; null: the latest did not',
  }),
  previous_secret_until: nullable(Timestamp, {
    description: 'Until then deliveries are signed with the secret before, too',
  }),
  created_at: Timestamp,
  updated_at: Timestamp,
});

const SECRET = {
  secret: nullable(Type.String(), { description: 'Shown once; what deliveries are signed with: whsec_…' }),
};

const Attempt = strictObject({
  at: Timestamp,
  status: nullable(Type.Integer(), { description: 'Of the answer; null: there was none' }),
  latency_ms: Type.Integer(),
  error: nullable(Type.String(), { description: 'Why it failed; null: it was taken' }),
  response: Type.String({ description: 'The beginning of the answer, as text' }),
});

const Delivery = strictObject({
  id: Uuid,
  webhook_id: Uuid,
  message_id: Type.String({ description: 'The header webhook-id, the same in every attempt' }),
  event_id: nullable(Uuid, { description: 'Null: a test' }),
  event_type: Type.String(),
  status: Type.Enum(['pending', 'succeeded', 'failed'], {
    description: 'Pending: there will be another attempt; failed: there will be none',
  }),
  attempts: Type.Array(Attempt, { description: 'Oldest first; the latest 20' }),
  next_attempt_at: nullable(Timestamp),
  created_at: Timestamp,
});

const COMMON = {
  tag: 'webhooks',
  audience: 'both',
  role: 'admin',
  query: NO_FIELDS,
  headers: NO_FIELDS,
  status: 200,
} as const;
const ONE = { path: '/webhooks/{webhook_id}', params: strictObject({ webhook_id: Uuid }) } as const;
const ERRORS = ['not_found'] as const;

/** Webhooks, to which the events of an organization are posted: https://www.standardwebhooks.com */
export const webhookOperations = {
  'webhooks.list': {
    ...COMMON,
    summary: 'List the webhooks of the organization, oldest first',
    method: 'GET',
    path: '/webhooks',
    params: NO_FIELDS,
    body: null,
    output: Type.Array(Webhook),
    errors: [],
  },
  'webhooks.create': {
    ...COMMON,
    summary: 'Have events posted to an address, signed with a secret that is shown once',
    method: 'POST',
    path: '/webhooks',
    params: NO_FIELDS,
    body: strictObject({
      url: FIELDS.url,
      event_types: FIELDS.event_types,
      description: Type.Optional(FIELDS.description),
      enabled: Type.Optional(FIELDS.enabled),
    }),
    output: strictObject({ ...Webhook.properties, ...SECRET }),
    secretField: 'secret',
    errors: ['quota_exceeded'],
  },
  'webhooks.get': {
    ...COMMON,
    ...ONE,
    summary: 'Get a webhook',
    method: 'GET',
    body: null,
    output: Webhook,
    errors: ERRORS,
  },
  'webhooks.update': {
    ...COMMON,
    ...ONE,
    summary:
      'Change a webhook; what is absent stays. Enabled again, it goes on with the deliveries that wait',
    method: 'PATCH',
    body: strictObject({
      url: Type.Optional(FIELDS.url),
      event_types: Type.Optional(FIELDS.event_types),
      description: Type.Optional(FIELDS.description),
      enabled: Type.Optional(FIELDS.enabled),
    }),
    output: Webhook,
    errors: ERRORS,
  },
  'webhooks.remove': {
    ...COMMON,
    ...ONE,
    summary: 'Remove a webhook with its deliveries; what is under way may still arrive',
    method: 'DELETE',
    body: null,
    output: MessageResponse,
    errors: ERRORS,
  },
  'webhooks.rotate': {
    ...COMMON,
    ...ONE,
    summary: 'Sign with a new secret, and with the one before for a while too',
    method: 'POST',
    path: '/webhooks/{webhook_id}/rotate',
    body: strictObject({
      overlap_secs: optional(Type.Integer({ minimum: 0, maximum: WEEK_SECONDS }), {
        description: 'For how long both sign; a day unless given, 0: not at all',
      }),
    }),
    output: strictObject({ ...Webhook.properties, ...SECRET }),
    secretField: 'secret',
    errors: ERRORS,
  },
  'webhooks.test': {
    ...COMMON,
    ...ONE,
    summary: 'Send a test now, and say how it went',
    method: 'POST',
    path: '/webhooks/{webhook_id}/test',
    body: null,
    output: Delivery,
    errors: ERRORS,
  },
  'webhooks.deliveries': {
    ...COMMON,
    summary: 'List what a webhook was sent in the last 7 days, newest first, with every attempt',
    method: 'GET',
    path: '/webhooks/{webhook_id}/deliveries',
    params: ONE.params,
    query: strictObject(PAGE_QUERY),
    body: null,
    output: pageOf(Delivery),
    errors: ['not_found', 'invalid_cursor'],
  },
  'webhooks.redeliver': {
    ...COMMON,
    summary: 'Send a delivery once more now, under its webhook-id, and say how it went',
    method: 'POST',
    path: '/webhooks/{webhook_id}/deliveries/{delivery_id}/redeliver',
    params: strictObject({ webhook_id: Uuid, delivery_id: Uuid }),
    body: null,
    output: Delivery,
    errors: ['not_found', 'invalid_state_transition'],
  },
} as const satisfies Record<string, RestOperation>;
