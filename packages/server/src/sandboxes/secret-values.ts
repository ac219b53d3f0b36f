import type { Network } from '@svc/contract';
import type { SecretValues } from '@svc/engine/client';
import type { Sealer } from '../secrets/sealer.ts';
import type { Database } from '../store/database.ts';
import type { SandboxRecord } from '../store/sandboxes.ts';
import { listSecrets, nameInStore, secretContext } from '../store/secrets.ts';
import { invalidConfig } from './check-sandbox.ts';
import { openSecrets } from './sandbox-secrets.ts';

type Entries = NonNullable<Network['secrets']>['entries'];

/** The values of a sandbox's secrets, its own and those that it takes from the store of its organization. */
export async function secretValuesOf(
  { database, sealer }: { readonly database: Database; readonly sealer: Sealer },
  record: SandboxRecord,
): Promise<SecretValues> {
  const entries = record.spec.network?.secrets?.entries ?? [];
  if (entries.length === 0) return {};
  const { values } = openSecrets(sealer, record);
  const stored = await requireStored(database, record.organizationId, entries);
  const found = entries.map(({ env_var: name, source = null }, index) => {
    const secret = source === null ? undefined : stored.get(nameInStore(source));
    const value =
      secret === undefined ? values[index] : sealer.open(secret.sealedValue, secretContext(secret.id));
    return [name, value ?? ''] as const;
  });
  return Object.fromEntries(found);
}

/** The secrets of the organization that entries refer to. @throws PlatformError `invalid_sandbox_config` naming one that is missing */
export async function requireStored(db: Database, organizationId: string, entries: Entries) {
  const isStored = entries.some(({ source = null }) => source !== null);
  const secrets = isStored ? await listSecrets(db, organizationId) : [];
  const byName = new Map(secrets.map((secret) => [secret.name, secret]));
  for (const [index, { source = null }] of entries.entries()) {
    if (source === null || byName.has(nameInStore(source))) continue;
    const field = `network.secrets.entries[${index}].source`;
    const name = nameInStore(source);
    const reason = `the organization has no secret ${name}; set it with svc secret set ${name}, or send its value instead`;
    throw invalidConfig(field, reason);
  }
  return byName;
}
