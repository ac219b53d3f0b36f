import { isAbsolute } from 'node:path';
import { PlatformError, type SandboxSpec } from '@svc/contract';
import type { CreateSandbox, NewOrchestratorSandbox, RegistryAuth } from '@svc/contract/orchestrator';
import { hostFolderOf } from './host-folder.ts';
import type { Sealer } from '../secrets/sealer.ts';
import type { Database } from '../store/database.ts';
import { readPatches } from '../store/new-sandbox.ts';
import { readTerms } from '../store/quotas.ts';
import { findRegistry, findRegistryFor, registryContext, type RegistryRecord } from '../store/registries.ts';
import { canonicalRegistryHost } from '../store/registry-host.ts';
import type { SandboxRecord } from '../store/sandboxes.ts';
import { ensureHostVolume, findVolume, listMounts, type VolumeRecord } from '../store/volumes.ts';
import { findCeiling } from './find-ceiling.ts';
import type { NetworkCeilings } from './network-ceilings.ts';
import { openSecrets, type RegistryChoice } from './sandbox-secrets.ts';
import { giveSecrets } from './secret-values.ts';

const DOCKER_HUB = 'docker.io';

export interface RequestParts {
  readonly database: Database;
  readonly sealer: Sealer;
  /** Makes sure that the engine has the volume. */
  readonly makeVolume: (volume: VolumeRecord) => Promise<void>;
  readonly networkCeilings: NetworkCeilings;
}

/** Builds the engine's request to make and start this sandbox. The engine knows no organizations: names become ids here. */
export async function toEngineRequest(
  parts: RequestParts,
  record: SandboxRecord,
): Promise<NewOrchestratorSandbox> {
  const { id, organizationId, isolation, snapshotId } = record;
  const given = await giveSecrets(parts, record);
  const spec = { ...given.spec, ...(await readPatches(parts.database, record)) };
  const { registry } = openSecrets(parts.sealer, record);
  const hostVolume = usesHostVolume(spec) ? await prepareHostVolume(parts, organizationId) : undefined;
  return {
    id,
    // When its run ends this server removes it, after the end was stored.
    spec: { ...spec, lifecycle: { ...spec.lifecycle, ephemeral: false } },
    ...(Object.keys(given.values).length === 0 ? {} : { secretValues: given.values }),
    start: true,
    volumes: await prepareVolumes(parts, record),
    registryAuth: await registryAuthFor(parts, organizationId, spec.image.reference, registry),
    imageScope: organizationId,
    networkCeiling: await findCeiling(parts.database, parts.networkCeilings, organizationId),
    maxHeldBytes: await maxImageBytes(parts.database, organizationId),
    ...hostFolderOf(organizationId, record),
    ...(hostVolume === undefined ? {} : { hostVolume }),
    ...(snapshotId === null ? {} : { snapshot: snapshotId }),
    // The class comes from the engine's report, or was checked against the list of classes.
    ...(isolation === null ? {} : { isolation: isolation as NonNullable<CreateSandbox['isolation']> }),
  };
}

/** Limit for all images of an organization together; null: none. */
export async function maxImageBytes(database: Database, organizationId: string): Promise<number | null> {
  const { limits } = await readTerms(database, organizationId);
  return limits.max_image_storage_gib === null ? null : limits.max_image_storage_gib * 2 ** 30;
}

/** Whether a path of a bind or a patch is relative, and so lies in the organization's host volume. */
export function usesHostVolume(spec: SandboxSpec): boolean {
  const isRelative = (path: string) => !isAbsolute(path);
  const inMounts = (spec.mounts ?? []).some((mount) => mount.type === 'bind' && isRelative(mount.host));
  return inMounts || (spec.patches ?? []).some((patch) => 'src' in patch && isRelative(patch.src));
}

async function prepareHostVolume(
  { database, makeVolume }: RequestParts,
  organizationId: string,
): Promise<string> {
  const volume = await ensureHostVolume(database, organizationId);
  await makeVolume(volume);
  return volume.id;
}

/** Volume ids by the names that the spec uses: those of the create, also when a name was reused since. */
async function prepareVolumes(
  { database, makeVolume }: RequestParts,
  { id, organizationId, spec }: SandboxRecord,
): Promise<Record<string, string>> {
  const named = (spec.mounts ?? []).filter((mount) => mount.type === 'named');
  if (named.length === 0) return {};
  const mounts = await listMounts(database, id);
  const byPath = new Map(mounts.map(({ mountPath, volumeId }) => [mountPath, volumeId]));
  const volumes: Record<string, string> = {};
  for (const mount of named) {
    const volume = await findVolume(database, organizationId, byPath.get(mount.guest) ?? '');
    if (volume === undefined) {
      const message = `Volume '${mount.name}' was deleted; make it again and create the sandbox anew`;
      throw new PlatformError('volume_not_found', message, { details: { volume: mount.name } });
    }
    await makeVolume(volume);
    volumes[mount.name] = volume.id;
  }
  return volumes;
}

/** Null: the registry gets no credential. */
export async function registryAuthFor(
  { database, sealer }: Pick<RequestParts, 'database' | 'sealer'>,
  organizationId: string,
  reference: string,
  registry: RegistryChoice | null,
): Promise<RegistryAuth | null> {
  if (registry?.mode === 'anonymous') return null;
  if (registry?.mode === 'inline') return { username: registry.username, password: registry.password };
  const host = canonicalRegistryHost(registryHostOf(reference));
  const found = await (registry?.mode === 'specific'
    ? findRegistry(database, organizationId, registry.credential_id)
    : findRegistryFor(database, organizationId, host));
  // SAFETY: a password is sent only to the registry that it belongs to, no matter which image the caller chose.
  return found?.host === host ? openRegistry(sealer, found) : null;
}

function openRegistry(sealer: Sealer, { id, username, sealedPassword }: RegistryRecord): RegistryAuth {
  return { username, password: sealer.open(sealedPassword, registryContext(id)) };
}

/** As the engine parses references: a first part with a dot or a port, or `localhost`, is a host. */
export function registryHostOf(reference: string): string {
  const [first = '', ...rest] = reference.split('/');
  const isHost = rest.length > 0 && (/[.:]/.test(first) || first === 'localhost');
  return isHost ? first : DOCKER_HUB;
}
