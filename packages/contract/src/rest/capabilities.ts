import { Type } from '../schema/type.ts';
import { strictObject } from '../spec/strict.ts';
import { NO_FIELDS, nullable } from './fields.ts';
import type { RestOperation } from './rest-operation.ts';

export const FEATURES = [
  'snapshots',
  'volumes',
  'recovery',
  'idempotency_keys',
  'metrics_history',
  'audit_chain',
] as const;

const SshGateway = strictObject({
  port: Type.Integer({ description: 'On the host of this API; the user name is the slug of a sandbox' }),
  host_key: Type.String({ description: 'As a line of a known_hosts file has it: type and key' }),
  fingerprint: Type.String({ description: 'Of the host key, as `ssh` asks its user about it: SHA256:…' }),
});

const PreviewDomain = strictObject({
  domain: Type.String({ description: 'Port PORT of a sandbox is at PORT-SLUG.DOMAIN' }),
  scheme: Type.Enum(['http', 'https']),
  port: Type.Integer({ description: 'That browsers connect to' }),
  is_open: Type.Boolean({ description: 'On the machine of this server previews open without a token' }),
});

const Capabilities = strictObject({
  version: Type.String({ description: 'Of the engine that runs sandboxes' }),
  isolation: strictObject({
    default: nullable(Type.String(), { description: 'What `auto` gives; null when nothing can be run' }),
    classes: Type.Array(
      strictObject({
        name: Type.String(),
        runtime: nullable(Type.String(), { description: 'The program behind it; null when there is none' }),
        is_available: Type.Boolean(),
        reason: Type.String({ description: 'Which version runs, or what is missing and how to get it' }),
      }),
    ),
  }),
  nodes: Type.Array(
    strictObject({
      name: Type.String(),
      is_available: Type.Boolean(),
      reason: nullable(Type.String(), { description: 'Why no sandbox can run there; null: they can' }),
      version: nullable(Type.String(), { description: 'Of its engine; null while it is away' }),
      isolation: nullable(Type.String(), { description: 'What `auto` gives there' }),
      sandboxes: nullable(Type.Integer(), { description: 'How many it has, of all organizations' }),
    }),
    { description: 'The hosts of sandboxes; empty where there is only one' },
  ),
  network: strictObject({
    ceiling: Type.Array(Type.String(), {
      description:
        'What the operator lets sandboxes of this organization reach at most: `public`, `private`, `host`, `metadata`, `link_local`, ' +
        'ranges of addresses, or `all` alone. A policy that allows more is `network_ceiling_exceeded`',
    }),
  }),
  ssh: nullable(SshGateway, { description: 'Null: this server has no SSH gateway' }),
  previews: nullable(PreviewDomain, { description: 'Null: this server has no domain for previews' }),
  features: Type.Array(Type.Enum([...FEATURES])),
  limits: strictObject({
    default_page_size: Type.Integer(),
    max_page_size: Type.Integer(),
    max_body_bytes: Type.Integer({
      description:
        'Of JSON, but for the create of a sandbox, which may have 24 MiB; streamed files may be of any size',
    }),
    max_metrics_range_secs: Type.Integer(),
    min_metrics_step_secs: Type.Integer(),
  }),
});

export const capabilityOperations = {
  'capabilities.get': {
    summary: 'What this server can do',
    tag: 'capabilities',
    method: 'GET',
    path: '/capabilities',
    audience: 'both',
    role: 'member',
    params: NO_FIELDS,
    query: NO_FIELDS,
    headers: NO_FIELDS,
    body: null,
    output: Capabilities,
    status: 200,
    errors: ['orchestrator_unreachable'],
  },
} as const satisfies Record<string, RestOperation>;
