import { registryHostOf } from './engine-request.ts';
import type { RegistryChoice } from './sandbox-secrets.ts';
import type { Database } from '../store/database.ts';
import { findRegistry } from '../store/registries.ts';
import { canonicalRegistryHost } from '../store/registry-host.ts';
import { invalidConfig } from './check-sandbox.ts';

/** @throws PlatformError `invalid_sandbox_config` when the named credential does not fit the image's registry */
export async function requireRegistry(
  db: Database,
  organizationId: string,
  registry: RegistryChoice | null,
  reference: string,
): Promise<void> {
  if (registry?.mode !== 'specific') return;
  const found = await findRegistry(db, organizationId, registry.credential_id);
  // SAFETY: members may use the password but not read it. They could read it at a registry of their choice.
  if (found?.host === canonicalRegistryHost(registryHostOf(reference))) return;
  const reason =
    found === undefined
      ? `there is no registry credential ${registry.credential_id}`
      : `is for ${found.host}, which the image does not come from`;
  throw invalidConfig('registry.credential_id', reason);
}
