import type { Static } from 'typebox';
import { Type } from '../schema/type.ts';
import { Destination } from '../spec/network.ts';
import { RLIMIT_RESOURCES } from '../spec/rlimit-resources.ts';
import { EnvVar } from '../spec/sandbox-spec.ts';
import { HostPattern, ViolationAction } from '../spec/secrets.ts';
import { Labels, Scripts, strictObject } from '../spec/strict.ts';
import { nullable } from './fields.ts';

const Whole = Type.Integer({ minimum: 0 });
const Text = nullable(Type.String());
const Words = nullable(Type.Array(Type.String()));
const Action = Type.Enum(['allow', 'deny']);

const Placed = {
  guest: Type.String({ description: 'Path in the sandbox' }),
  options: strictObject({
    readonly: Type.Boolean(),
    noexec: Type.Boolean(),
    nosuid: Type.Boolean(),
    nodev: Type.Boolean(),
    override_uid: nullable(Whole),
    override_gid: nullable(Whole),
  }),
};
const Presented = {
  stat_virtualization: Type.Enum(['strict', 'relaxed', 'off']),
  host_permissions: Type.Enum(['private', 'mirror']),
};

/** Without mounts: `GET …/volumes` lists the volumes. */
const MountView = Type.Union([
  strictObject({ type: Type.Literal('Bind'), ...Placed, ...Presented, quota_mib: nullable(Whole) }),
  strictObject({ type: Type.Literal('Named'), ...Placed, ...Presented }),
  strictObject({ type: Type.Literal('Tmpfs'), ...Placed, size_mib: nullable(Whole) }),
  strictObject({
    type: Type.Literal('DiskImage'),
    ...Placed,
    format: Type.Enum(['Qcow2', 'Raw', 'Vmdk']),
    fstype: Text,
  }),
]);

const PolicyView = strictObject({
  default_egress: Action,
  default_ingress: Action,
  rules: Type.Array(
    strictObject({
      direction: Type.Enum(['egress', 'ingress', 'any']),
      destination: Destination,
      action: Action,
      protocols: Type.Array(Type.Enum(['tcp', 'udp', 'icmpv4', 'icmpv6']), { description: 'Empty: any' }),
      ports: Type.Array(strictObject({ start: Whole, end: Whole }), { description: 'Empty: any' }),
    }),
  ),
});

const TlsView = strictObject({
  enabled: Type.Boolean({ description: 'Secrets have connections read also where this is false' }),
  block_quic_on_intercept: Type.Boolean(),
  verify_upstream: Type.Boolean(),
  bypass: Type.Array(Type.String()),
  intercepted_ports: Type.Array(Whole),
  upstream_ca_cert: Type.Array(Type.String()),
  cache: strictObject({ capacity: Whole, validity_hours: Whole }),
  intercept_ca: strictObject({ cert_path: Text, key_path: Text }),
  scoped_upstream_ca_cert: Type.Array(strictObject({ path: Type.String(), pattern: Type.String() })),
  scoped_verify_upstream: Type.Array(strictObject({ pattern: Type.String(), verify: Type.Boolean() })),
});

const NetworkView = strictObject({
  enabled: Type.Boolean(),
  trust_host_cas: Type.Boolean(),
  max_connections: nullable(Whole),
  max_udp_connections: nullable(Whole, { description: 'Null: as many as `max_connections`' }),
  ports: Type.Array(
    strictObject({
      host_port: Whole,
      guest_port: Whole,
      host_bind: Type.String(),
      protocol: Type.Enum(['tcp', 'udp']),
    }),
  ),
  dns: strictObject({
    nameservers: Type.Array(Type.String(), { description: "Empty: the host's own" }),
    query_timeout_ms: Whole,
    rebind_protection: Type.Boolean(),
  }),
  policy: nullable(PolicyView, {
    description: 'Null: names and public addresses may be reached, others not',
  }),
  secrets: Type.Array(
    strictObject({
      env_var: Type.String(),
      placeholder: Type.String(),
      allowed_hosts: Type.Array(HostPattern),
      injection: strictObject({
        headers: Type.Boolean(),
        header_fields: nullable(Type.Array(Type.String()), { description: 'Null: every header' }),
        basic_auth: Type.Boolean(),
        query_params: Type.Boolean(),
        body: Type.Boolean(),
      }),
      on_violation: nullable(ViolationAction),
      passthrough_hosts: Type.Array(HostPattern, {
        description: 'Hosts that are sent the placeholder as it is, where `on_violation` does not name them',
      }),
    }),
    { description: 'Without their values, and without where those come from' },
  ),
  interface: strictObject({
    ipv4_address: Text,
    ipv4_pool: Text,
    ipv6_address: Text,
    ipv6_pool: Text,
    mac: nullable(Type.Array(Whole)),
    mtu: nullable(Whole),
  }),
  tls: TlsView,
});

const SPEC_FIELDS = {
  image: nullable(Type.String()),
  env: Type.Array(EnvVar),
  labels: Labels,
  lifecycle: strictObject({
    ephemeral: Type.Boolean(),
    idle_timeout_secs: nullable(Whole),
    max_duration_secs: nullable(Whole),
  }),
  mounts: Type.Array(MountView),
  network: NetworkView,
  resources: strictObject({ vcpus: Whole, memory_mib: Whole, disk_size_mib: nullable(Whole) }),
  rlimits: Type.Array(
    strictObject({
      resource: Type.Enum(RLIMIT_RESOURCES.map(toPascalCase)),
      soft: Whole,
      hard: Whole,
    }),
  ),
  runtime: strictObject({
    cmd: Words,
    entrypoint: Words,
    hostname: Text,
    log_level: Text,
    scripts: Scripts,
    shell: Text,
    user: Text,
    workdir: Text,
    disable_metrics_sample: Type.Boolean(),
    metrics_sample_interval_ms: nullable(Whole),
  }),
};

/** The effective spec of a sandbox, without secret values and host paths. */
export const SandboxSpecView = Type.Object(SPEC_FIELDS, {
  description:
    'What it really has, with what its image and the defaults say; absent until the image is known, which is when it is first started. Curated: no secret values, no paths of the host',
});
export type SandboxSpecView = Static<typeof SandboxSpecView>;

/** The same without the values that come from the image. */
export const RequestedSpecView = Type.Object(SPEC_FIELDS, {
  description:
    'What was asked for, in the shape of `spec`, with defaults and without what the image says; there until the image is known, and while the sandbox is failed',
});

function toPascalCase<Text extends string>(text: Text): Capitalize<Text> {
  // The value has this type.
  return `${text.slice(0, 1).toUpperCase()}${text.slice(1)}` as Capitalize<Text>;
}
