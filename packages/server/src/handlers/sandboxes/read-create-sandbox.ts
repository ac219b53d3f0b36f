import type { PlatformError } from '@svc/contract';
import type { CreateSandboxRequest } from '@svc/contract/rest';
import { readSecrets } from '@svc/contract/spec';
import { invalidConfig as invalid, type WantedSandbox } from '../../sandboxes/check-sandbox.ts';
import type { RestCall } from '../../dispatch/rest-call.ts';

/** The fields that each source allows besides those of every sandbox; the first one is required. */
const SOURCE_FIELDS = {
  oci: ['reference'],
  bind: ['path'],
  disk_image: ['path', 'format', 'fstype'],
  disk_snapshot: ['disk_snapshot_ref'],
} as const;
const ALL_SOURCE_FIELDS = ['reference', 'path', 'format', 'fstype', 'disk_snapshot_ref'] as const;

/** Placeholder for the image of a snapshot, until the snapshot is read. */
const IMAGE_OF_SNAPSHOT = 'snapshot';

/** Parses the body of a create. @throws PlatformError `invalid_sandbox_config` naming fields that contradict each other */
export function readCreateSandbox(
  body: CreateSandboxRequest,
  { isOperator }: Pick<RestCall, 'isOperator'>,
): WantedSandbox {
  const { name, slug, isolation = 'auto', registry } = body;
  const { reference, snapshot } = rootOf(body);
  return {
    name,
    slug: slug ?? null,
    spec: toSpec(body, reference),
    ports: body.network?.ports ?? [],
    registry: registry ?? null,
    isolation: isolation === 'auto' ? null : isolation,
    snapshot,
    hasHostPaths: isOperator,
  };
}

interface Root {
  readonly reference: string;
  readonly snapshot: string | null;
}

function rootOf(body: CreateSandboxRequest): Root {
  const { image, source } = body;
  if (image !== undefined) {
    if (source !== undefined) throw invalid('source', 'contradicts image; send one of them');
    refuseFields(body, [], 'goes with source, not with image');
    if (image.type === 'oci') return { reference: image.reference, snapshot: null };
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
  if (source === 'oci') return { reference: body.reference ?? '', snapshot: null };
  if (source === 'disk_snapshot') return rootOfSnapshot(body);
  throw unsupportedRoot('source', source);
}

function rootOfSnapshot({ disk_snapshot_ref: place }: CreateSandboxRequest): Root {
  if (place?.type === 'managed') return { reference: IMAGE_OF_SNAPSHOT, snapshot: place.id };
  const reason = 'snapshots in the host volume cannot be used; name a managed one by its id or name';
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

/** Absent fields stay absent, so that a spec keeps what was requested. */
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
    ...(network === undefined ? {} : { network: readSecrets(forEngine) }),
  };
}
