import { checkSpec, PlatformError, type PublishedPort, type SandboxSpec } from '@svc/contract';
import { withoutValues, type RegistryChoice, type SandboxSecrets } from './sandbox-secrets.ts';
import type { PortMapping } from '../store/port-mapping.ts';
import { checkPorts } from '../published-ports/publish-ports.ts';

/** What somebody asks for, whichever surface they came by. Nothing of it is checked yet. */
export interface WantedSandbox {
  readonly name: string;
  /** Null: one is made up. */
  readonly slug: string | null;
  /** With the values of secrets. When it is made from a snapshot, its image is the snapshot's. */
  readonly spec: unknown;
  readonly ports: readonly PublishedPort[];
  /** Null: whatever the organization has for the image's registry. */
  readonly registry: RegistryChoice | null;
  /** Null: the strongest class that the host has. */
  readonly isolation: string | null;
  /** Id or name of the snapshot that its disk begins with. */
  readonly snapshot: string | null;
  /** The caller owns the host: absolute paths mean it, as far as the engine lets sandboxes mount it. */
  readonly hasHostPaths: boolean;
}

/** The same, seen to be well formed. */
export interface CheckedSandbox extends Omit<WantedSandbox, 'spec' | 'ports' | 'registry'> {
  /** Without the values of secrets. */
  readonly spec: SandboxSpec;
  readonly ports: readonly PortMapping[];
  readonly secrets: SandboxSecrets;
}

/** What can be judged without knowing who asks and what there is. @throws PlatformError `invalid_sandbox_config` naming the field */
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

/** Whether the store of the organization has what entries without a value refer to is seen when the sandbox is made. */
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
