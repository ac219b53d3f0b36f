import {
  DEFAULT_MEMORY_MIB,
  DEFAULT_METRICS_INTERVAL_MS,
  DEFAULT_VCPUS,
  type Mount,
  type NetworkPolicy,
  type SandboxSpec,
} from '@svc/contract';
import type { SandboxSpecView } from '@svc/contract/rest';
import type { PortMapping } from '../ports/port-mapping.ts';
import type { SandboxRecord } from '../store/sandboxes.ts';

const DNS = { nameservers: [], query_timeout_ms: 5000, rebind_protection: true };
const MOUNT_OPTIONS = {
  readonly: false,
  noexec: false,
  override_uid: null,
  override_gid: null,
};
/** On every mount, whatever was asked for. */
const ALWAYS = { nosuid: true, nodev: true };
const INJECTION = { headers: true, basic_auth: true, query_params: false, body: false };

/** What a sandbox was made of, as answers show it: with its defaults, without secret values and sources on the host. */
export function toSpecView({ spec, ports }: Pick<SandboxRecord, 'spec' | 'ports'>): SandboxSpecView {
  return {
    image: spec.image.reference,
    env: spec.env ?? [],
    labels: spec.labels ?? {},
    lifecycle: lifecycleOf(spec),
    mounts: (spec.mounts ?? []).map(toMountView),
    network: toNetworkView(spec, ports),
    resources: resourcesOf(spec),
    rlimits: (spec.rlimits ?? []).map((limit) => ({ ...limit, resource: toPascalCase(limit.resource) })),
    runtime: {
      ...runtimeOf(spec),
      hostname: spec.runtime?.hostname ?? null,
      disable_metrics_sample: spec.runtime?.disable_metrics_sample ?? false,
      metrics_sample_interval_ms: spec.runtime?.metrics_sample_interval_ms ?? DEFAULT_METRICS_INTERVAL_MS,
    },
  };
}

/** The same in the shape that callers send, again without secret values. */
export function toCreateShape(spec: SandboxSpec) {
  return {
    image: spec.image,
    resources: resourcesOf(spec),
    // With what older clients do not know only where it was asked for.
    runtime: { ...spec.runtime, ...runtimeOf(spec) },
    env: spec.env ?? [],
    labels: spec.labels ?? {},
    rlimits: spec.rlimits ?? [],
    mounts: (spec.mounts ?? []).map((mount) => ({ ...mount, options: { ...mount.options, ...ALWAYS } })),
    patches: [],
    network: { ...spec.network, enabled: spec.network?.enabled ?? true },
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
    disk_size_mib: resources?.disk_size_mib ?? null,
  };
}

function lifecycleOf({ lifecycle }: SandboxSpec) {
  return {
    ephemeral: lifecycle?.ephemeral ?? false,
    idle_timeout_secs: lifecycle?.idle_timeout_secs ?? null,
    max_duration_secs: lifecycle?.max_duration_secs ?? null,
  };
}

function runtimeOf({ runtime }: SandboxSpec) {
  return {
    cmd: runtime?.cmd ?? null,
    entrypoint: runtime?.entrypoint ?? null,
    log_level: runtime?.log_level ?? null,
    scripts: runtime?.scripts ?? {},
    shell: runtime?.shell ?? null,
    user: runtime?.user ?? null,
    workdir: runtime?.workdir ?? null,
  };
}

function toMountView(mount: Mount): SandboxSpecView['mounts'][number] {
  const { guest } = mount;
  const common = { guest, options: { ...MOUNT_OPTIONS, ...mount.options, ...ALWAYS } };
  switch (mount.type) {
    case 'bind':
      return { type: 'Bind', ...common, ...presentationOf(mount), quota_mib: mount.quota_mib ?? null };
    case 'named':
      return { type: 'Named', ...common, ...presentationOf(mount) };
    case 'tmpfs':
      return { type: 'Tmpfs', ...common, size_mib: mount.size_mib ?? null };
    case 'disk_image':
      return { type: 'DiskImage', ...common, format: FORMATS[mount.format], fstype: mount.fstype ?? null };
    default:
      return mount satisfies never;
  }
}

const FORMATS = { qcow2: 'Qcow2', raw: 'Raw', vmdk: 'Vmdk' } as const;

function presentationOf({
  stat_virtualization = 'strict',
  host_permissions = 'private',
}: Pick<Mount & { readonly type: 'bind' | 'named' }, 'stat_virtualization' | 'host_permissions'>) {
  return { stat_virtualization, host_permissions };
}

function toNetworkView({ network }: SandboxSpec, ports: readonly PortMapping[]): SandboxSpecView['network'] {
  return {
    enabled: network?.enabled ?? true,
    trust_host_cas: false,
    max_connections: network?.max_connections ?? null,
    ports: ports.map(({ host, guest, bind = '127.0.0.1', protocol = 'tcp' as const }) => ({
      host_port: host,
      guest_port: guest,
      host_bind: bind,
      protocol,
    })),
    dns: DNS,
    policy: toPolicyView(network?.policy ?? null),
    secrets: (network?.secrets?.entries ?? []).map((entry) => ({
      env_var: entry.env_var,
      placeholder: entry.placeholder,
      allowed_hosts: entry.allowed_hosts,
      injection: { ...INJECTION, ...entry.injection },
      on_violation: entry.on_violation ?? null,
    })),
  };
}

/** What is left out of a policy is denied, and what is left out of a rule is any. */
function toPolicyView(policy: NetworkPolicy | null): SandboxSpecView['network']['policy'] {
  if (policy === null) return null;
  const { default_egress = 'deny', default_ingress = 'deny', rules = [] } = policy;
  const shown = rules.map((rule) => ({ ...rule, protocols: rule.protocols ?? [], ports: rule.ports ?? [] }));
  return { default_egress, default_ingress, rules: shown };
}

function toPascalCase(text: string): string {
  return text.slice(0, 1).toUpperCase() + text.slice(1);
}
