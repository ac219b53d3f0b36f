import {
  DEFAULT_MEMORY_MIB,
  DEFAULT_VCPUS,
  PlatformError,
  type PublishedPort,
  type SandboxConfig,
  type SandboxSpec,
} from '@svc/contract';
import type { WantedSandbox } from '../../sandboxes/check-sandbox.ts';

const MAX_PORT = 65_535;

/**
 * Parses `config` of `sandbox.start`; undefined: use the stored configuration.
 * @throws PlatformError `invalid_sandbox_config` naming the field
 */
export function readConfig(
  name: string,
  config: SandboxConfig,
  { hasHostPaths }: Pick<WantedSandbox, 'hasHostPaths'>,
): WantedSandbox | undefined {
  const { image = null, ...rest } = config;
  if (image === null) return refuseStray(rest);
  return {
    name,
    slug: null,
    spec: toSpec(image, config),
    ports: (config.ports ?? []).map(toPort),
    registry: null,
    isolation: null,
    snapshot: null,
    hasHostPaths,
  };
}

/** A configuration is replaced as a whole: merging would give a sandbox that no caller has described. */
function refuseStray(config: Omit<SandboxConfig, 'image'>): undefined {
  const stray = Object.entries(config).find(([, value]) => value !== null && value !== undefined);
  if (stray === undefined) return undefined;
  const reason =
    'goes with config.image: without an image the sandbox is started as it is stored. Send the image too to replace its configuration';
  throw invalid(`config.${stray[0]}`, reason);
}

function toSpec(image: string, config: SandboxConfig): SandboxSpec {
  return {
    image: { type: 'oci', reference: image },
    resources: { vcpus: config.cpus ?? DEFAULT_VCPUS, memory_mib: config.memory ?? DEFAULT_MEMORY_MIB },
    env: toEnv(config.envs ?? []),
    runtime: {
      workdir: toWorkdir(config.workdir ?? ''),
      shell: config.shell ?? null,
      scripts: config.scripts ?? {},
    },
    mounts: (config.volumes ?? []).map(toMount),
  };
}

/** Split at the first `=`. */
function toEnv(envs: readonly string[]): NonNullable<SandboxSpec['env']> {
  return envs.map((entry, index) => {
    const at = entry.indexOf('=');
    if (at < 1) throw invalid(`config.envs[${index}]`, 'must be KEY=VALUE');
    return { key: entry.slice(0, at), value: entry.slice(at + 1) };
  });
}

/** Empty: the working directory of the image. */
function toWorkdir(path: string): string | null {
  if (path === '') return null;
  if (path.startsWith('/')) return path;
  throw invalid('config.workdir', 'must be an absolute path inside the sandbox');
}

function toMount(volume: string, index: number): NonNullable<SandboxSpec['mounts']>[number] {
  const [host = '', guest = '', mode, ...more] = volume.split(':');
  const isModeKnown = mode === undefined || mode === 'ro' || mode === 'rw';
  if (host === '' || !guest.startsWith('/') || !isModeKnown || more.length > 0) {
    throw invalid(
      `config.volumes[${index}]`,
      'must be host:guest or host:guest:ro with an absolute guest path',
    );
  }
  return { type: 'bind', host, guest, options: { readonly: mode === 'ro' } };
}

function toPort(mapping: string, index: number): PublishedPort {
  const match = /^(\d{1,5})(?::(\d{1,5}))?$/.exec(mapping);
  const host = Number(match?.[1]);
  const guest = Number(match?.[2] ?? match?.[1]);
  const isPort = (port: number) => port >= 1 && port <= MAX_PORT;
  if (!isPort(host) || !isPort(guest)) {
    throw invalid(`config.ports[${index}]`, 'must be host:guest or port, each 1–65535');
  }
  return { host_port: host, guest_port: guest };
}

function invalid(field: string, reason: string): PlatformError {
  return new PlatformError('invalid_sandbox_config', `Invalid params: ${field} ${reason}`, {
    details: { field, reason },
  });
}
