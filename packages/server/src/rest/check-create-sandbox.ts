import { isAbsolute } from 'node:path';
import { checkSpec, PlatformError, type SandboxSpec } from '@svc/contract';
import type { CreateSandboxRequest } from '@svc/contract/rest';
import { withoutValues, type SandboxSecrets } from '../lifecycle/sandbox-secrets.ts';
import type { PortMapping } from '../ports/port-mapping.ts';
import { checkPorts } from '../ports/publish-ports.ts';
import type { RestSettings } from './rest-parts.ts';

/** What the body of a create means. */
export interface CheckedCreate {
  readonly name: string;
  readonly slug: string | null;
  /** Without the values of secrets. When it is made from a snapshot, its image is the snapshot's. */
  readonly spec: SandboxSpec;
  readonly ports: readonly PortMapping[];
  readonly secrets: SandboxSecrets;
  /** Null: the strongest that the host has. */
  readonly isolation: string | null;
  readonly snapshotId: string | null;
}

/** The fields that go with each source beside those of every sandbox; the first one is needed. */
const SOURCE_FIELDS = {
  oci: ['reference'],
  bind: ['path'],
  disk_image: ['path', 'format', 'fstype'],
  disk_snapshot: ['disk_snapshot_ref'],
} as const;
const ALL_SOURCE_FIELDS = ['reference', 'path', 'format', 'fstype', 'disk_snapshot_ref'] as const;

/** Stands for the image of a snapshot, until the snapshot says which it is. */
const IMAGE_OF_SNAPSHOT = 'snapshot';

/** @throws PlatformError `invalid_sandbox_config` naming the field */
export function checkCreateSandbox(
  body: CreateSandboxRequest,
  { hasHostPaths, publishAddresses }: Pick<RestSettings, 'hasHostPaths' | 'publishAddresses'>,
): CheckedCreate {
  const { name, slug, isolation = 'auto', registry } = body;
  const { reference, snapshotId } = rootOf(body);
  const { spec, values } = withoutValues(checkSpec(toSpec(body, reference)));
  checkSecrets(body);
  if (!hasHostPaths) refuseHostPaths(spec);
  return {
    name,
    slug: slug ?? null,
    spec,
    ports: checkPorts(body.network?.ports ?? [], publishAddresses),
    secrets: { values, registry: registry ?? null },
    isolation: isolation === 'auto' ? null : isolation,
    snapshotId,
  };
}

interface Root {
  readonly reference: string;
  readonly snapshotId: string | null;
}

function rootOf(body: CreateSandboxRequest): Root {
  const { image, source } = body;
  if (image !== undefined) {
    if (source !== undefined) throw invalid('source', 'contradicts image; send one of them');
    refuseFields(body, [], 'goes with source, not with image');
    if (image.type === 'oci') return { reference: image.reference, snapshotId: null };
    throw unsupportedRoot('image.type', image.type);
  }
  if (source === undefined) {
    const stray = ALL_SOURCE_FIELDS.find((field) => isGiven(body[field]));
    if (stray !== undefined) throw invalid('source', `is missing; ${stray} says nothing without it`);
    throw invalid('image', 'is missing; send image, or source with reference');
  }
  refuseFields(body, SOURCE_FIELDS[source], `does not go with source ${source}`);
  const [needed] = SOURCE_FIELDS[source];
  if (!isGiven(body[needed])) throw invalid(needed, `is needed with source ${source}`);
  if (source === 'oci') return { reference: body.reference ?? '', snapshotId: null };
  if (source === 'disk_snapshot') return rootOfSnapshot(body);
  throw unsupportedRoot('source', source);
}

function rootOfSnapshot({ disk_snapshot_ref: place }: CreateSandboxRequest): Root {
  if (place?.type === 'managed') return { reference: IMAGE_OF_SNAPSHOT, snapshotId: place.id.toLowerCase() };
  const reason = 'snapshots in the host volume cannot be used; name a managed one by its id';
  throw invalid('disk_snapshot_ref.type', reason);
}

function refuseFields(body: CreateSandboxRequest, allowed: readonly string[], reason: string): void {
  const stray = ALL_SOURCE_FIELDS.find((field) => isGiven(body[field]) && !allowed.includes(field));
  if (stray !== undefined) throw invalid(stray, reason);
}

function isGiven(value: unknown): boolean {
  return value !== undefined && value !== null;
}

function unsupportedRoot(field: string, type: string): PlatformError {
  return invalid(field, `${type} roots cannot be run by this engine; use an OCI image`);
}

/** Fields that were not sent stay absent, so that a spec says what was asked for. */
function toSpec(body: CreateSandboxRequest, reference: string): unknown {
  const {
    name: _name,
    slug: _slug,
    image: _image,
    source: _source,
    reference: _reference,
    path: _path,
    format: _format,
    fstype: _fstype,
    disk_snapshot_ref: _snapshot,
    isolation: _isolation,
    registry: _registry,
    network,
    ...rest
  } = body;
  const { ports: _ports, ...forEngine } = network ?? {};
  return {
    image: { type: 'oci', reference },
    ...rest,
    ...(network === undefined ? {} : { network: forEngine }),
  };
}

/** What is no value here could only come from the machine of the caller, which we cannot look at. */
function checkSecrets({ network }: CreateSandboxRequest): void {
  for (const [index, entry] of (network?.secrets?.entries ?? []).entries()) {
    const field = `network.secrets.entries[${index}].value`;
    const { value = '', source = null, env_var: name } = entry;
    if (value !== '') continue;
    if (source?.type === 'env') {
      const reason = `the server cannot read ${source.var} of your environment; send its value in this field`;
      throw invalid(field, reason);
    }
    if (source?.type === 'store') {
      throw invalid(field, 'this server has no store of secrets to look into; send the value in this field');
    }
    throw invalid(field, `is missing; send the value of ${name}, which is kept sealed and never shown`);
  }
}

/** Organizations share the host: what they mount of it lies in their own host volume. */
function refuseHostPaths(spec: SandboxSpec): void {
  const reason = "must be relative: it is looked up in the organization's host volume";
  for (const [index, mount] of (spec.mounts ?? []).entries()) {
    if ('host' in mount && isAbsolute(mount.host)) throw invalid(`mounts[${index}].host`, reason);
  }
  for (const [index, patch] of (spec.patches ?? []).entries()) {
    if ('src' in patch && isAbsolute(patch.src)) throw invalid(`patches[${index}].src`, reason);
  }
}

function invalid(field: string, reason: string): PlatformError {
  return new PlatformError('invalid_sandbox_config', `${field}: ${reason}`, { details: { field, reason } });
}
