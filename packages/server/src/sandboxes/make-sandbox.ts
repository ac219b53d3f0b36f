import { isAbsolute } from 'node:path';
import { DEFAULT_MEMORY_MIB, DEFAULT_VCPUS, PlatformError, type SandboxSpec } from '@svc/contract';
import type { Isolation } from '@svc/contract/orchestrator';
import { hostFolderOf } from './host-folder.ts';
import { ceilingOf, toEngineCeiling, type NetworkCeilings } from './network-ceilings.ts';
import { recordSandboxEvent } from './sandbox-events.ts';
import { sealSecrets, withoutSources } from './sandbox-secrets.ts';
import { volumesOf } from './volumes-of.ts';
import type { Orchestrator } from '../orchestrator/orchestrator.ts';
import { requireFreePorts } from '../published-ports/publish-ports.ts';
import { checkSandboxQuota } from '../accounting/check-quotas.ts';
import type { Sealer } from '../secrets/sealer.ts';
import type { Database } from '../store/database.ts';
import { insertSandbox } from '../store/new-sandbox.ts';
import type { OrganizationRecord } from '../store/organizations.ts';
import type { EventCaller, SandboxRecord } from '../store/sandboxes.ts';
import { findSnapshot, type SnapshotRecord } from '../store/snapshots.ts';
import { invalidConfig, type CheckedSandbox } from './check-sandbox.ts';
import { requireRegistry } from './require-registry.ts';
import { requireStored } from './secret-values.ts';

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
const MIB = 1024 * 1024;
const CHECK_TIMEOUT_MS = 30_000;

export interface MakeParts {
  readonly orchestrator: Pick<Orchestrator, 'check'>;
  readonly sealer: Sealer;
  readonly networkCeilings: NetworkCeilings;
}

export interface NewSandboxRequest {
  readonly id: string;
  readonly organization: OrganizationRecord;
  readonly sandbox: CheckedSandbox;
  readonly isStarted: boolean;
  readonly caller: EventCaller;
}

/** Runs `work` in one transaction with the organization locked, together with the surface's own writes. */
type Commit = (work: (transaction: Database) => Promise<SandboxRecord>) => Promise<SandboxRecord>;

/**
 * Makes every new sandbox, for all surfaces. Invalid and impossible requests are refused before anything is written. With `isStarted`
 * its desired state is running; the caller starts the convergence.
 * @throws PlatformError `invalid_sandbox_config` naming the field, `network_ceiling_exceeded`, `isolation_unavailable`,
 * `quota_exceeded`, `volume_not_found`, `snapshot_not_found`, `name_already_exists`; `orchestrator_unreachable` with `isStarted` only
 */
export async function makeSandbox(
  parts: MakeParts,
  request: NewSandboxRequest,
  commit: Commit,
): Promise<SandboxRecord> {
  const { organization, sandbox } = request;
  if (!sandbox.hasHostPaths) refuseHostPaths(sandbox.spec, organization);
  await requireFreePorts(sandbox.ports);
  await requireAbility(parts, request);
  return await commit((transaction) => insert(parts, request, transaction));
}

/**
 * Organizations share the host: their mounts of it must lie in their own host volume, or in a folder that the operator named after them.
 * The engine resolves paths inside that folder, so a path that passes here cannot lead outside.
 */
function refuseHostPaths(spec: SandboxSpec, { id }: OrganizationRecord): void {
  const isForeign = (path: string) => {
    const names = path.split('/');
    return isAbsolute(path) && (!names.includes(id) || names.includes('..'));
  };
  for (const [index, mount] of (spec.mounts ?? []).entries()) {
    if (!('host' in mount) || !isForeign(mount.host)) continue;
    const place =
      mount.type === 'bind'
        ? "in the organization's host volume"
        : "in the organization's folder of disk images";
    throw invalidConfig(`mounts[${index}].host`, hostPathReason(place, id));
  }
  for (const [index, patch] of (spec.patches ?? []).entries()) {
    if ('src' in patch && isForeign(patch.src))
      throw invalidConfig(`patches[${index}].src`, hostPathReason("in the organization's host volume", id));
  }
}

function hostPathReason(place: string, organizationId: string): string {
  return `must be relative: it is looked up ${place}; absolute paths only where the operator made a folder ${organizationId}`;
}

/** Asks the engine now what it would refuse at the start. If it is away it is asked when the sandbox is to run. */
async function requireAbility(
  { orchestrator, networkCeilings }: MakeParts,
  { organization, sandbox, isStarted }: NewSandboxRequest,
): Promise<void> {
  const { spec, isolation } = sandbox;
  try {
    await orchestrator.check(
      {
        spec: withoutSources(withoutContent(spec)),
        start: isStarted,
        networkCeiling: toEngineCeiling(ceilingOf(networkCeilings, organization.slug)),
        ...hostFolderOf(organization.id, sandbox),
        // One of the list of classes, which the schema of the surface has checked.
        ...(isolation === null ? {} : { isolation: isolation as Isolation }),
      },
      AbortSignal.timeout(CHECK_TIMEOUT_MS),
    );
  } catch (error) {
    if (isStarted || !PlatformError.is(error, 'orchestrator_unreachable')) throw error;
  }
}

/** Patches may hold megabytes that were validated already; only their source paths on the host are sent. */
function withoutContent(spec: SandboxSpec): SandboxSpec {
  if (spec.patches === undefined) return spec;
  const patches = spec.patches.map((patch) =>
    'src' in patch ? patch : ({ type: 'mkdir', path: '/' } as const),
  );
  return { ...spec, patches };
}

async function insert(
  { sealer }: MakeParts,
  { id, organization, sandbox, isStarted, caller }: NewSandboxRequest,
  transaction: Database,
): Promise<SandboxRecord> {
  const { name, slug, ports, isolation, hasHostPaths, secrets } = sandbox;
  const snapshot = await snapshotOf(transaction, organization.id, sandbox);
  const spec = withImageOf(snapshot, sandbox.spec);
  await requireRegistry(transaction, organization.id, secrets.registry, spec.image.reference);
  await requireStored(transaction, organization.id, spec);
  await checkSandboxQuota(transaction, organization, spec, { isStarted });
  const isEphemeral = spec.lifecycle?.ephemeral === true;
  const record = await insertSandbox(transaction, {
    id,
    organizationId: organization.id,
    name,
    slug,
    spec,
    ports,
    isolation,
    snapshotId: snapshot?.id ?? null,
    hasHostPaths,
    secrets: sealSecrets(sealer, id, secrets),
    volumes: await volumesOf(transaction, organization.id, spec),
    isWantedRunning: isStarted,
    requestedBy: caller,
  });
  const payload = { slug: record.slug, image: spec.image.reference, ephemeral: isEphemeral };
  await recordSandboxEvent(transaction, 'sandbox_created', record, caller, payload);
  return record;
}

/** Finds it by id or name. @throws PlatformError `snapshot_not_found` */
async function snapshotOf(
  db: Database,
  organizationId: string,
  { snapshot: named }: CheckedSandbox,
): Promise<SnapshotRecord | null> {
  if (named === null) return null;
  const byId = UUID.test(named)
    ? await findSnapshot(db, organizationId, { id: named.toLowerCase() })
    : undefined;
  const found = byId ?? (await findSnapshot(db, organizationId, { name: named }));
  if (found !== undefined) return found;
  const message = `There is no snapshot ${named}`;
  throw new PlatformError('snapshot_not_found', message, { details: { snapshot: named } });
}

function withImageOf(snapshot: SnapshotRecord | null, spec: SandboxSpec): SandboxSpec {
  if (snapshot === null) return spec;
  return {
    ...spec,
    image: { type: 'oci', reference: imageOf(snapshot.manifest) ?? spec.image.reference },
    // Stored, so that limits and bills use the size of the disk that it gets.
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
