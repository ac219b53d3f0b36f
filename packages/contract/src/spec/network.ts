import type { Static } from 'typebox';
import { Type } from '../schema/type.ts';
import { Tls } from './network-tls.ts';
import { PublishedPort } from './published-port.ts';
import { SecretsRequest } from './secret-request.ts';
import { Secrets } from './secrets.ts';
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

const MAX_NAMESERVERS = 3;
const Dns = strictObject({
  nameservers: Type.Optional(Type.Array(Type.String({ maxLength: 64 }), { maxItems: MAX_NAMESERVERS })),
  query_timeout_ms: Type.Optional(Type.Integer({ minimum: 1, maximum: 60_000 })),
  rebind_protection: Type.Optional(Type.Boolean()),
});

const Text = Type.Union([Type.String({ minLength: 1, maxLength: 64 }), Type.Null()]);
/** Settings of the sandbox's network interface. Null or absent: the engine chooses. */
const Interface = strictObject({
  ipv4_address: Type.Optional(Text),
  ipv4_pool: Type.Optional(Text),
  ipv6_address: Type.Optional(Text),
  ipv6_pool: Type.Optional(Text),
  mac: Type.Optional(
    Type.Union([
      Type.Array(Type.Integer({ minimum: 0, maximum: 255 }), { minItems: 6, maxItems: 6 }),
      Type.Null(),
    ]),
  ),
  mtu: Type.Optional(Type.Union([Type.Integer({ minimum: 576, maximum: 65_535 }), Type.Null()])),
});

const Connections = Type.Integer({ minimum: 1, maximum: 4096 });

export const Network = strictObject({
  enabled: Type.Optional(Type.Boolean({ default: true })),
  policy: Type.Optional(Type.Union([NetworkPolicy, Type.Null()])),
  secrets: Type.Optional(Type.Union([Secrets, Type.Null()])),
  tls: Type.Optional(Type.Union([Tls, Type.Null()])),
  trust_host_cas: Type.Optional(
    Type.Boolean({ default: false, description: 'The authorities that the host trusts are trusted inside' }),
  ),
  dns: Type.Optional(Type.Union([Dns, Type.Null()])),
  interface: Type.Optional(Type.Union([Interface, Type.Null()])),
  strict: Type.Optional(Type.Boolean()),
  max_connections: Type.Optional(
    Type.Union([Connections, Type.Null()], { description: 'Over every protocol; 256 unless given' }),
  ),
  max_udp_connections: Type.Optional(
    Type.Union([Connections, Type.Null()], { description: 'How many of them over UDP; null: all' }),
  ),
});
export type Network = Static<typeof Network>;

const { policy, dns, strict, max_connections, max_udp_connections, tls, secrets } = Network.properties;

/** The network settings that can be changed while the sandbox exists. Absent: unchanged; null: the default. */
export const NetworkChange = strictObject({
  policy,
  dns,
  strict,
  max_connections,
  max_udp_connections,
  tls,
  secrets,
});
export type NetworkChange = Static<typeof NetworkChange>;

const MAX_PUBLISHED_PORTS = 64;

const SecretsField = Type.Optional(Type.Union([SecretsRequest, Type.Null()]));

/** A change as callers may send it. */
export const NetworkChangeRequest = strictObject({ ...NetworkChange.properties, secrets: SecretsField });

/** The network settings of a create: those for the engine, and the ports that the server publishes. */
export const NetworkRequest = strictObject({
  ...Network.properties,
  secrets: SecretsField,
  ports: Type.Optional(
    Type.Union([Type.Array(PublishedPort, { maxItems: MAX_PUBLISHED_PORTS }), Type.Null()]),
  ),
});

function Port() {
  return Type.Integer({ minimum: 0, maximum: 65_535 });
}
