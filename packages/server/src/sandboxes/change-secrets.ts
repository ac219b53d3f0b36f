import type { NetworkChange, SandboxSpec } from '@svc/contract';
import type { Sealer } from '../secrets/sealer.ts';
import type { SandboxRecord } from '../store/sandboxes.ts';
import { openSecrets, withoutValues, type SandboxSecrets } from './sandbox-secrets.ts';

type Secrets = NetworkChange['secrets'];

/** Completes a change: an entry without value and source keeps those that its variable has. */
export function withKnownValues(sealer: Sealer, record: SandboxRecord, change: NetworkChange): NetworkChange {
  const { secrets = null } = change;
  if (secrets === null) return change;
  const { values } = openSecrets(sealer, record);
  const known = new Map(
    entriesOf(record.spec.network?.secrets).map(({ env_var: name, source = null }, index) => [
      name,
      source === null ? { value: values[index] ?? '' } : { source },
    ]),
  );
  const entries = secrets.entries.map((entry) => {
    const { value = '', source = null, env_var: name } = entry;
    return value !== '' || source !== null ? entry : { ...entry, ...known.get(name) };
  });
  return { ...change, secrets: { ...secrets, entries } };
}

/** Separates the values to seal from a changed spec; the registry's password stays. */
export function sealableOf(
  sealer: Sealer,
  record: SandboxRecord,
  changed: SandboxSpec,
): { readonly spec: SandboxSpec; readonly secrets: SandboxSecrets } {
  const { spec, values } = withoutValues(changed);
  return { spec, secrets: { ...openSecrets(sealer, record), values } };
}

function entriesOf(secrets: Secrets) {
  return secrets?.entries ?? [];
}
