import { checkSpec, PlatformError, type PublishedPort, type SandboxSpec } from '@svc/contract';
import { withoutValues, type RegistryChoice, type SandboxSecrets } from './sandbox-secrets.ts';
import type { PortMapping } from '../store/port-mapping.ts';
import { checkPorts } from '../published-ports/publish-ports.ts';

/** The request for a sandbox, the same for all surfaces. Not validated yet. */
export interface WantedSandbox {
  readonly name: string;
  /** Null: generated. */
  readonly slug: string | null;
  /** With the values of secrets. For a sandbox from a snapshot the image is the snapshot's. */
  readonly spec: unknown;
  readonly ports: readonly PublishedPort[];
  /** Null: the organization's credential for the image's registry, if there is one. */
  readonly registry: RegistryChoice | null;
  /** Null: the strongest class that the host has. */
  readonly isolation: string | null;
  /** Id or name of the snapshot that its disk is created from. */
  readonly snapshot: string | null;
  /** The caller owns the host: absolute paths are paths of the host, as far as the engine allows mounting them. */
  readonly hasHostPaths: boolean;
}

/** The same, validated. */
export interface CheckedSandbox extends Omit<WantedSandbox, 'spec' | 'ports' | 'registry'> {
  /** Without the values of secrets. */
  readonly spec: SandboxSpec;
  readonly ports: readonly PortMapping[];
  readonly secrets: SandboxSecrets;
}

/** Checks what does not depend on the caller or on the store. @throws PlatformError `invalid_sandbox_config` naming the field */
export function checkSandbox(wanted: WantedSandbox, publishAddresses: readonly string[]): CheckedSandbox {
  const { registry, ...rest } = wanted;
  const full = checkSpec(wanted.spec);
  requireValues(full);
  const { spec, values } = withoutValues(full);
  const ports = checkPorts(wanted.ports, publishAddresses);
  if (full.network?.enabled === false && ports.length > 0)
    throw invalidConfig(
      'network.ports',
      'cannot be published without a network; remove them, or set network.enabled to true',
    );
  return { ...rest, spec, ports, secrets: { values, registry } };
}

/** Whether the organization's store has the secrets that entries without a value refer to is checked when the sandbox is made. */
export function requireValues({ network }: SandboxSpec): void {
  for (const [index, entry] of (network?.secrets?.entries ?? []).entries()) {
    const field = `network.secrets.entries[${index}].value`;
    const { value = '', source = null, env_var: name } = entry;
    if (value !== '' || source !== null) continue;
    throw invalidConfig(field, `is missing; send the value of ${name}, which is kept sealed and never shown`);
  }
}

export function invalidConfig(field: string, reason: string): PlatformError {
  return new PlatformError('invalid_sandbox_config', `${field}: ${reason}`, { details: { field, reason } });
}
