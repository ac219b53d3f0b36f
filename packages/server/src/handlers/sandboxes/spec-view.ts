import {
  DEFAULT_DISK_MIB,
  DEFAULT_DNS,
  DEFAULT_MAX_CONNECTIONS,
  DEFAULT_MEMORY_MIB,
  DEFAULT_METRICS_INTERVAL_MS,
  DEFAULT_POLICY,
  DEFAULT_SHELL,
  DEFAULT_VCPUS,
  DENY_ALL,
  toU64,
  type Mount,
  type NetworkPolicy,
  type SandboxSpec,
} from '@svc/contract';
import type { ResolvedSpec } from '@svc/contract/orchestrator';
import type { SandboxSpecView } from '@svc/contract/rest';
import {
  DEFAULT_HOST_PERMISSIONS,
  DEFAULT_STAT_VIRTUALIZATION,
  DEFAULT_TLS,
  placesOf,
  violationRule,
} from '@svc/contract/spec';
import type { PortMapping } from '../../store/port-mapping.ts';
import { labelsOf } from '../../sandboxes/labels-of.ts';
import { withoutSources } from '../../sandboxes/sandbox-secrets.ts';
import type { SandboxRecord } from '../../store/sandboxes.ts';

type Secrets = NonNullable<NonNullable<SandboxSpec['network']>['secrets']>;

const MOUNT_OPTIONS = {
  readonly: false,
  noexec: false,
  override_uid: null,
  override_gid: null,
};
/** Set on every mount. */
const ALWAYS = { nosuid: true, nodev: true };
const INTERFACE = {
  ipv4_address: null,
  ipv4_pool: null,
  ipv6_address: null,
  ipv6_pool: null,
  mac: null,
  mtu: null,
};

type ViewedRecord = Pick<SandboxRecord, 'spec' | 'ports' | 'resolved'>;

/**
 * The effective spec, as answers show it: completed by image and defaults, without secret values and sources on the host. Undefined
 * until the image is known.
 */
export function toSpecView(record: ViewedRecord): SandboxSpecView | undefined {
  return record.resolved === null ? undefined : toView(record, record.resolved);
}

/** The requested spec in the same shape: values that only the image and the host determine are null or empty. */
export function toRequestedView(record: ViewedRecord): SandboxSpecView {
  const { env = [], rlimits = [], runtime = {} } = record.spec;
  const asked = {
    cmd: runtime.cmd ?? [],
    entrypoint: runtime.entrypoint ?? [],
    env: env.map(({ key, value }) => `${key}=${value}`),
    workdir: runtime.workdir ?? null,
    user: runtime.user ?? null,
    hostname: runtime.hostname ?? null,
    labels: {},
    rlimits,
  };
  return toView(record, asked);
}

/** Resolved or requested. */
type Known = Omit<ResolvedSpec, 'workdir' | 'user' | 'hostname'> & {
  readonly [Name in 'workdir' | 'user' | 'hostname']: string | null;
};

function toView({ spec, ports }: ViewedRecord, known: Known): SandboxSpecView {
  return {
    image: spec.image.reference,
    env: known.env.map(toEnvVar),
    labels: labelsOf(spec, known),
    lifecycle: lifecycleOf(spec),
    mounts: (spec.mounts ?? []).map((mount) => toMountView(mount, spec)),
    network: toNetworkView(spec, known, ports),
    resources: resourcesOf(spec),
    rlimits: known.rlimits.map(({ resource, soft, hard }) => ({
      resource: toPascalCase(resource),
      soft: toU64(soft),
      hard: toU64(hard),
    })),
    runtime: {
      ...runtimeOf(spec, known),
      hostname: known.hostname,
      disable_metrics_sample: spec.runtime?.disable_metrics_sample ?? false,
      metrics_sample_interval_ms: spec.runtime?.metrics_sample_interval_ms ?? DEFAULT_METRICS_INTERVAL_MS,
    },
  };
}

/**
 * The same in the shape that callers send, again without secret values. The reference client sends this environment with every command,
 * so it gets the caller's variables alone: the image's PATH would replace one with the scripts' folder.
 */
export function toCreateShape({ spec, resolved }: Pick<SandboxRecord, 'spec' | 'resolved'>) {
  if (resolved === null) return undefined;
  return {
    image: spec.image,
    resources: resourcesOf(spec),
    // Fields that older clients do not know are included only where they were requested.
    runtime: { ...spec.runtime, ...runtimeOf(spec, resolved) },
    env: spec.env ?? [],
    labels: labelsOf(spec, resolved),
    rlimits: (spec.rlimits ?? []).map(({ resource, soft, hard }) => ({
      resource,
      soft: toU64(soft),
      hard: toU64(hard),
    })),
    mounts: (spec.mounts ?? []).map((mount) => ({ ...mount, options: { ...mount.options, ...ALWAYS } })),
    patches: [],
    network: { ...withoutSources(spec).network, enabled: spec.network?.enabled ?? true },
    init: spec.init ?? null,
    pull_policy: spec.pull_policy ?? 'if_missing',
    security_profile: spec.security_profile ?? 'default',
    lifecycle: lifecycleOf(spec),
  };
}

function resourcesOf({ resources }: SandboxSpec) {
  return {
    vcpus: resources?.vcpus ?? DEFAULT_VCPUS,
    memory_mib: resources?.memory_mib ?? DEFAULT_MEMORY_MIB,
    disk_size_mib: resources?.disk_size_mib ?? DEFAULT_DISK_MIB,
  };
}

function lifecycleOf({ lifecycle }: SandboxSpec) {
  return {
    ephemeral: lifecycle?.ephemeral ?? false,
    idle_timeout_secs: lifecycle?.idle_timeout_secs ?? null,
    max_duration_secs: lifecycle?.max_duration_secs ?? null,
  };
}

function runtimeOf(
  { runtime }: SandboxSpec,
  resolved: Pick<Known, 'cmd' | 'entrypoint' | 'user' | 'workdir'>,
) {
  return {
    cmd: [...resolved.cmd],
    entrypoint: [...resolved.entrypoint],
    log_level: runtime?.log_level ?? null,
    scripts: runtime?.scripts ?? {},
    shell: runtime?.shell ?? DEFAULT_SHELL,
    user: resolved.user,
    workdir: resolved.workdir,
  };
}

function toEnvVar(entry: string): { key: string; value: string } {
  const at = entry.indexOf('=');
  return at < 0 ? { key: entry, value: '' } : { key: entry.slice(0, at), value: entry.slice(at + 1) };
}

function toMountView(mount: Mount, spec: SandboxSpec): SandboxSpecView['mounts'][number] {
  const { guest } = mount;
  const common = { guest, options: { ...MOUNT_OPTIONS, ...mount.options, ...ALWAYS } };
  switch (mount.type) {
    case 'bind':
      return { type: 'Bind', ...common, ...presentationOf(mount), quota_mib: mount.quota_mib ?? null };
    case 'named':
      return { type: 'Named', ...common, ...presentationOf(mount) };
    case 'tmpfs':
      return { type: 'Tmpfs', ...common, size_mib: mount.size_mib ?? resourcesOf(spec).memory_mib };
    case 'disk_image':
      return {
        type: 'DiskImage',
        ...common,
        format: FORMATS[mount.format],
        fstype: mount.fstype ?? DISK_FILE_SYSTEM,
      };
    default:
      return mount satisfies never;
  }
}

const DISK_FILE_SYSTEM = 'ext4';
const FORMATS = { qcow2: 'Qcow2', raw: 'Raw', vmdk: 'Vmdk' } as const;

function presentationOf({
  stat_virtualization = DEFAULT_STAT_VIRTUALIZATION,
  host_permissions = DEFAULT_HOST_PERMISSIONS,
}: Pick<Mount & { readonly type: 'bind' | 'named' }, 'stat_virtualization' | 'host_permissions'>) {
  return { stat_virtualization, host_permissions };
}

function toNetworkView(
  { network }: SandboxSpec,
  resolved: Pick<ResolvedSpec, 'interface'>,
  ports: readonly PortMapping[],
): SandboxSpecView['network'] {
  const enabled = network?.enabled ?? true;
  return {
    enabled,
    trust_host_cas: network?.trust_host_cas ?? false,
    max_connections: network?.max_connections ?? DEFAULT_MAX_CONNECTIONS,
    max_udp_connections: network?.max_udp_connections ?? null,
    ports: ports.map(({ host, guest, bind = '127.0.0.1', protocol = 'tcp' as const }) => ({
      host_port: host,
      guest_port: guest,
      host_bind: bind,
      protocol,
    })),
    dns: { ...DEFAULT_DNS, ...network?.dns },
    policy: toPolicyView(enabled ? (network?.policy ?? DEFAULT_POLICY) : DENY_ALL),
    secrets: (network?.secrets?.entries ?? []).map((entry) => ({
      env_var: entry.env_var,
      placeholder: entry.placeholder,
      allowed_hosts: entry.allowed_hosts,
      ...toSecretRules(entry),
    })),
    interface: { ...INTERFACE, ...network?.interface, ...interfaceOf(resolved) },
    tls: toTlsView(network?.tls ?? {}),
  };
}

/** In the older of the two forms of the API, plus fields that only the newer one has. */
function toSecretRules(entry: Secrets['entries'][number]) {
  const { headers, headerFields, basicAuth, queryParams, body } = placesOf(entry);
  const { passthroughHosts, action } = violationRule(entry);
  const isOlder = entry.on_violation?.type === 'passthrough';
  return {
    injection: {
      headers,
      header_fields: headerFields === null ? null : [...headerFields],
      basic_auth: basicAuth,
      query_params: queryParams,
      body,
    },
    on_violation: isOlder ? { type: 'passthrough' as const, hosts: [...passthroughHosts] } : action,
    passthrough_hosts: isOlder ? [] : [...passthroughHosts],
  };
}

/** The effective interface while it runs, instead of the requested one. */
function interfaceOf({ interface: wired = null }: Pick<ResolvedSpec, 'interface'>) {
  if (wired === null) return {};
  const { ipv4Address, ipv6Address, mac, mtu } = wired;
  return { ipv4_address: ipv4Address, ipv6_address: ipv6Address, mac: [...mac], mtu };
}

function toTlsView(tls: NonNullable<NonNullable<SandboxSpec['network']>['tls']>) {
  return {
    ...DEFAULT_TLS,
    bypass: [],
    upstream_ca_cert: [],
    scoped_upstream_ca_cert: [],
    scoped_verify_upstream: [],
    ...tls,
    cache: { ...DEFAULT_TLS.cache, ...tls.cache },
    intercept_ca: { cert_path: null, key_path: null },
  };
}

/** Absent in a policy means denied; absent in a rule means any. */
function toPolicyView(policy: NetworkPolicy): SandboxSpecView['network']['policy'] {
  const { default_egress = 'deny', default_ingress = 'deny', rules = [] } = policy;
  const shown = rules.map((rule) => ({ ...rule, protocols: rule.protocols ?? [], ports: rule.ports ?? [] }));
  return { default_egress, default_ingress, rules: shown };
}

function toPascalCase<Text extends string>(text: Text): Capitalize<Text> {
  // The result is the capitalized type.
  return (text.slice(0, 1).toUpperCase() + text.slice(1)) as Capitalize<Text>;
}
