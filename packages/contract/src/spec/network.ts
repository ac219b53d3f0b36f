import type { Static } from 'typebox';
import { Type } from '../schema/type.ts';
import { PublishedPort } from './published-port.ts';
import { strictObject } from './strict.ts';

const Action = Type.Enum(['allow', 'deny']);

export const Destination = Type.Union([
  Type.Literal('any'),
  strictObject({ cidr: Type.String({ maxLength: 64 }) }),
  strictObject({ domain: Type.String({ maxLength: 253 }) }),
  strictObject({ domain_suffix: Type.String({ maxLength: 253 }) }),
  strictObject({
    group: Type.Enum(['public', 'loopback', 'private', 'link_local', 'metadata', 'multicast', 'host']),
  }),
]);

export const NetworkRule = strictObject({
  direction: Type.Enum(['egress', 'ingress', 'any']),
  destination: Destination,
  action: Action,
  protocols: Type.Optional(Type.Array(Type.Enum(['tcp', 'udp', 'icmpv4', 'icmpv6']))),
  ports: Type.Optional(Type.Array(strictObject({ start: Port(), end: Port() }))),
});

export const NetworkPolicy = strictObject({
  default_egress: Type.Optional(Action),
  default_ingress: Type.Optional(Action),
  rules: Type.Optional(Type.Array(NetworkRule, { maxItems: 1024 })),
});
export type NetworkPolicy = Static<typeof NetworkPolicy>;

export const HostPattern = Type.Union([
  strictObject({ type: Type.Literal('exact'), value: Type.String() }),
  strictObject({ type: Type.Literal('wildcard'), value: Type.String() }),
  strictObject({ type: Type.Literal('any') }),
]);
export const ViolationAction = Type.Union([
  strictObject({ type: Type.Enum(['block', 'block_and_log', 'block_and_terminate']) }),
  strictObject({ type: Type.Literal('passthrough'), hosts: Type.Array(HostPattern) }),
]);
const Secret = strictObject({
  env_var: Type.String({ pattern: '^[^=\\u0000]+$' }),
  placeholder: Type.String({ pattern: '^[^\\u0000\\r\\n]+$', maxLength: 1024 }),
  value: Type.Optional(Type.String()),
  source: Type.Optional(
    Type.Union([
      Type.Null(),
      strictObject({ type: Type.Literal('env'), var: Type.String() }),
      strictObject({ type: Type.Literal('store'), reference: Type.String() }),
    ]),
  ),
  allowed_hosts: Type.Array(HostPattern),
  injection: Type.Optional(
    strictObject({
      headers: Type.Optional(Type.Boolean()),
      basic_auth: Type.Optional(Type.Boolean()),
      query_params: Type.Optional(Type.Boolean()),
      body: Type.Optional(Type.Boolean()),
    }),
  ),
  on_violation: Type.Optional(Type.Union([ViolationAction, Type.Null()])),
  require_tls_identity: Type.Optional(Type.Boolean()),
});

const MAX_NAMESERVERS = 3;
const Dns = strictObject({
  nameservers: Type.Optional(Type.Array(Type.String({ maxLength: 64 }), { maxItems: MAX_NAMESERVERS })),
  query_timeout_ms: Type.Optional(Type.Integer({ minimum: 1, maximum: 60_000 })),
  rebind_protection: Type.Optional(Type.Boolean()),
});

export const Network = strictObject({
  enabled: Type.Optional(Type.Boolean({ default: true })),
  policy: Type.Optional(Type.Union([NetworkPolicy, Type.Null()])),
  secrets: Type.Optional(
    Type.Union([
      strictObject({ entries: Type.Array(Secret), on_violation: Type.Optional(ViolationAction) }),
      Type.Null(),
    ]),
  ),
  dns: Type.Optional(Type.Union([Dns, Type.Null()])),
  strict: Type.Optional(Type.Boolean()),
  max_connections: Type.Optional(Type.Union([Type.Integer({ minimum: 1, maximum: 4096 }), Type.Null()])),
});
export type Network = Static<typeof Network>;

const { policy, dns, strict, max_connections } = Network.properties;

/** What of the network can be changed while the sandbox exists. What is absent stays as it is; null is the default. */
export const NetworkChange = strictObject({ policy, dns, strict, max_connections });
export type NetworkChange = Static<typeof NetworkChange>;

const MAX_PUBLISHED_PORTS = 64;

/** What a create may say about the network: beside what the engine is told, the ports that the server publishes. */
export const NetworkRequest = strictObject({
  ...Network.properties,
  ports: Type.Optional(
    Type.Union([Type.Array(PublishedPort, { maxItems: MAX_PUBLISHED_PORTS }), Type.Null()]),
  ),
});

function Port() {
  return Type.Integer({ minimum: 0, maximum: 65_535 });
}
