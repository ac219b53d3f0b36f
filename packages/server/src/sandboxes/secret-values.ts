import type { Network, SandboxSpec } from '@svc/contract';
import type { SecretValues } from '@svc/contract/orchestrator';
import type { Sealer } from '../secrets/sealer.ts';
import type { Database } from '../store/database.ts';
import type { SandboxRecord } from '../store/sandboxes.ts';
import { listSecrets, nameInStore, secretContext, type SecretRecord } from '../store/secrets.ts';
import { invalidConfig } from './check-sandbox.ts';
import { openSecrets, withoutSources } from './sandbox-secrets.ts';
import { findProblem, hostsInForce } from './secret-hosts.ts';

type Secrets = NonNullable<Network['secrets']>;

/** The secrets in the engine's request: each value, and a spec with the hosts that it may be sent to. */
export interface GivenSecrets {
  readonly spec: SandboxSpec;
  readonly values: SecretValues;
}

/**
 * The secrets of a sandbox, its own and those from the store of its organization. A stored value and its hosts are read together, so
 * that the engine never gets it with outdated hosts.
 */
export async function giveSecrets(
  { database, sealer }: { readonly database: Database; readonly sealer: Sealer },
  record: SandboxRecord,
): Promise<GivenSecrets> {
  const { spec } = record;
  const secrets = spec.network?.secrets ?? null;
  if (secrets === null || secrets.entries.length === 0) return { spec, values: {} };
  const own = openSecrets(sealer, record).values;
  const stored = await findStored(database, record.organizationId, secrets);
  const values = secrets.entries.map(({ env_var: name }, index) => {
    const secret = stored[index];
    const value =
      secret === undefined ? own[index] : sealer.open(secret.sealedValue, secretContext(secret.id));
    return [name, value ?? ''] as const;
  });
  const entries = secrets.entries.map((entry, index) => {
    const secret = stored[index];
    if (secret === undefined) return entry;
    return { ...entry, allowed_hosts: hostsInForce(entry, secret, spec.network?.tls) };
  });
  const network = { ...spec.network, secrets: { ...secrets, entries } };
  return { spec: withoutSources({ ...spec, network }), values: Object.fromEntries(values) };
}

/**
 * Checks that the organization has the secrets that a spec refers to, and allows this use of them.
 * @throws PlatformError `invalid_sandbox_config` naming the field
 */
export async function requireStored(
  db: Database,
  organizationId: string,
  { network }: SandboxSpec,
): Promise<void> {
  const secrets = network?.secrets ?? { entries: [] };
  const stored = await findStored(db, organizationId, secrets);
  for (const [index, entry] of secrets.entries.entries()) {
    const secret = stored[index];
    const problem = secret === undefined ? undefined : findProblem(entry, secret, network?.tls);
    if (problem === undefined) continue;
    throw invalidConfig(
      `network.${problem.field.replace(/^entry/, `secrets.entries[${index}]`)}`,
      problem.reason,
    );
  }
}

/** By the index of the entry; undefined: it has a value of its own. */
async function findStored(
  db: Database,
  organizationId: string,
  { entries }: Secrets,
): Promise<readonly (SecretRecord | undefined)[]> {
  if (entries.every(({ source = null }) => source === null)) return [];
  const byName = new Map((await listSecrets(db, organizationId)).map((secret) => [secret.name, secret]));
  return entries.map(({ source = null }, index) => {
    if (source === null) return undefined;
    const name = nameInStore(source);
    const secret = byName.get(name);
    if (secret !== undefined) return secret;
    throw invalidConfig(
      `network.secrets.entries[${index}].source`,
      `the organization has no secret ${name}; set it with svc secret set ${name} --host, or send its value instead`,
    );
  });
}
