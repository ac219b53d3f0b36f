import type { Network, SandboxSpec } from '@svc/contract';
import type { Sealer } from '../secrets/sealer.ts';
import { sandboxSecretsContext } from '../store/stored-secrets.ts';

/** The credential that an image is fetched with. */
export type RegistryChoice =
  | { readonly mode: 'auto' | 'anonymous' }
  | { readonly mode: 'specific'; readonly credential_id: string }
  | { readonly mode: 'inline'; readonly username: string; readonly password: string };

/** The part of a sandbox that is stored sealed, apart from its spec. */
export interface SandboxSecrets {
  /** Of `network.secrets.entries`, in their order; empty: it comes from the store of the organization. */
  readonly values: readonly string[];
  /** Null: the organization's credential for the image's registry, if there is one. */
  readonly registry: RegistryChoice | null;
}

const NO_SECRETS: SandboxSecrets = { values: [], registry: null };

/** @returns null when there is nothing to seal. */
export function sealSecrets(sealer: Sealer, sandboxId: string, secrets: SandboxSecrets): string | null {
  if (secrets.values.every((value) => value === '') && secrets.registry === null) return null;
  return sealer.seal(JSON.stringify(secrets), sandboxSecretsContext(sandboxId));
}

export function openSecrets(
  sealer: Sealer,
  { id, secrets }: { readonly id: string; readonly secrets: string | null },
): SandboxSecrets {
  if (secrets === null) return NO_SECRETS;
  // The text was written by `sealSecrets`.
  return JSON.parse(sealer.open(secrets, sandboxSecretsContext(id))) as SandboxSecrets;
}

/** Removes the values from a spec, so that it can be stored and shown. */
export function withoutValues(spec: SandboxSpec): { readonly spec: SandboxSpec; readonly values: string[] } {
  const secrets = spec.network?.secrets ?? null;
  if (secrets === null || secrets.entries.length === 0) return { spec, values: [] };
  const entries = secrets.entries.map(({ value = '', source = null, ...entry }) =>
    value === '' && source !== null ? { ...entry, source } : entry,
  );
  return {
    spec: { ...spec, network: { ...spec.network, secrets: { ...secrets, entries } } },
    values: secrets.entries.map(({ value = '' }) => value),
  };
}

/** The form for the engine and for answers: without the sources of values. */
export function withoutSources<T extends { readonly network?: Network }>(spec: T): T {
  const secrets = spec.network?.secrets ?? null;
  if (secrets === null) return spec;
  const entries = secrets.entries.map(({ source: _source, ...entry }) => entry);
  return { ...spec, network: { ...spec.network, secrets: { ...secrets, entries } } };
}
