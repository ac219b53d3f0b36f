import { DEFAULT_MEMORY_MIB, DEFAULT_VCPUS, PlatformError, type SandboxSpec } from '@svc/contract';
import type { CreateSandboxRequest } from '@svc/contract/rest';
import { registryHostOf } from '../lifecycle/engine-request.ts';
import { describeNew } from '../lifecycle/lifecycle.ts';
import { recordSandboxEvent } from '../lifecycle/sandbox-events.ts';
import { sealSecrets, type RegistryChoice } from '../lifecycle/sandbox-secrets.ts';
import { volumesOf } from '../lifecycle/volumes-of.ts';
import { requireFreePorts } from '../ports/publish-ports.ts';
import { requireRoomForRun, requireRoomForSandbox } from '../quotas/require-room.ts';
import type { Database } from '../store/database.ts';
import { insertSandbox } from '../store/new-sandbox.ts';
import { findRegistry } from '../store/registries.ts';
import { canonicalRegistryHost } from '../store/registry-host.ts';
import type { SandboxRecord } from '../store/sandboxes.ts';
import { findSnapshot } from '../store/snapshots.ts';
import { askerOf } from './asker-of.ts';
import { checkCreateSandbox, type CheckedCreate } from './check-create-sandbox.ts';
import { requireEngine } from './require-engine.ts';
import type { RestCall } from './rest-call.ts';
import type { RestParts } from './rest-parts.ts';
import { toSandboxView } from './sandbox-view.ts';

const MIB = 1024 * 1024;

/** Writes down a sandbox and, with `isStarted`, that it should run; the rest happens in the background. */
export async function createSandbox(
  parts: RestParts,
  call: RestCall,
  request: { readonly id: string; readonly body: CreateSandboxRequest; readonly isStarted: boolean },
): Promise<SandboxRecord> {
  const { id, body, isStarted } = request;
  const create = checkCreateSandbox(body, parts.settings);
  if (isStarted) requireEngine(parts.health);
  await requireFreePorts(create.ports);
  const { organization } = call;
  const record = await call.commit(async ({ db }) => {
    const spec = await withImageOfSnapshot(db, organization.id, create);
    await requireRegistry(db, organization.id, create.secrets.registry, spec.image.reference);
    await requireRoomForSandbox(db, organization, spec);
    const isEphemeral = spec.lifecycle?.ephemeral === true;
    if (isStarted) await requireRoomForRun(db, organization, { isEphemeral });
    const { name, slug, ports, isolation, snapshotId, secrets } = create;
    const added = await insertSandbox(db, {
      id,
      organizationId: organization.id,
      name,
      slug,
      spec,
      ports,
      isolation,
      snapshotId,
      secrets: sealSecrets(parts.sealer, id, secrets),
      volumes: await volumesOf(db, organization.id, spec),
      isWantedRunning: isStarted,
      wish: askerOf(call),
    });
    await recordSandboxEvent(db, 'sandbox_created', added, askerOf(call), describeNew(added));
    return added;
  }, toSandboxView);
  if (isStarted) parts.lifecycle.converge(id);
  return record;
}

/** @throws PlatformError `snapshot_not_found` */
async function withImageOfSnapshot(
  db: Database,
  organizationId: string,
  { spec, snapshotId }: CheckedCreate,
): Promise<SandboxSpec> {
  if (snapshotId === null) return spec;
  const snapshot = await findSnapshot(db, organizationId, { id: snapshotId });
  if (snapshot === undefined) {
    const message = `There is no snapshot ${snapshotId}`;
    throw new PlatformError('snapshot_not_found', message, { details: { snapshot_id: snapshotId } });
  }
  return {
    ...spec,
    image: { type: 'oci', reference: imageOf(snapshot.manifest) ?? spec.image.reference },
    // Written down, so that limits and bills are about the disk that it gets.
    resources: {
      vcpus: DEFAULT_VCPUS,
      memory_mib: DEFAULT_MEMORY_MIB,
      disk_size_mib: diskMibOf(snapshot.manifest),
      ...withoutNulls(spec.resources),
    },
  };
}

function withoutNulls<T extends object>(fields: T | undefined): Partial<T> {
  const given = Object.entries(fields ?? {}).filter(([, value]) => value !== null);
  return Object.fromEntries(given) as Partial<T>;
}

/** Null when the manifest does not say. */
function diskMibOf({ state }: Readonly<Record<string, unknown>>): number | null {
  const { upper } = (state ?? {}) as { readonly upper?: { readonly size_bytes?: number } };
  return upper?.size_bytes === undefined ? null : Math.ceil(upper.size_bytes / MIB);
}

function imageOf({ image }: Readonly<Record<string, unknown>>): string | undefined {
  const isDescribed = typeof image === 'object' && image !== null && 'ref' in image;
  return isDescribed && typeof image.ref === 'string' ? image.ref : undefined;
}

/** @throws PlatformError `invalid_sandbox_config` when the credential that is named is not one for this image */
export async function requireRegistry(
  db: Database,
  organizationId: string,
  registry: RegistryChoice | null,
  reference: string,
): Promise<void> {
  if (registry?.mode !== 'specific') return;
  const found = await findRegistry(db, organizationId, registry.credential_id);
  // Whoever may use a password may not see it, which a registry of theirs would.
  if (found?.host === canonicalRegistryHost(registryHostOf(reference))) return;
  const field = 'registry.credential_id';
  const reason =
    found === undefined
      ? `there is no registry credential ${registry.credential_id}`
      : `is for ${found.host}, which the image does not come from`;
  throw new PlatformError('invalid_sandbox_config', `${field}: ${reason}`, { details: { field, reason } });
}
