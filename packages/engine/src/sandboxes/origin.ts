import type { SandboxSpec } from '@svc/contract';
import { PlatformError } from '@svc/contract/errors';
import type { CreateSandbox } from '@svc/contract/orchestrator';
import { DEFAULT_DISK_MIB, DEFAULT_MEMORY_MIB, DEFAULT_VCPUS } from '@svc/contract/spec';
import type { Image, ResolveOptions } from '../images/images.ts';
import type { NewDisk } from '../rootfs/rootfs.ts';
import type { Kit } from './kit.ts';

/** The initial state of a new sandbox. */
export interface Origin {
  /** The requested spec, completed with values of the image or snapshot. */
  readonly spec: SandboxSpec;
  readonly image: Image;
  /** An empty disk, or a copy of a snapshot's. */
  readonly createDisk: (handle: string, signal: AbortSignal, disk?: NewDisk) => Promise<void>;
}

type OriginRequest = Pick<
  CreateSandbox,
  'spec' | 'snapshot' | 'registryAuth' | 'imageScope' | 'maxHeldBytes'
>;

/**
 * Resolves the origin of a create: an image, pulled if the policy says so, with an empty disk; or a snapshot's disk on the image that it
 * was made on.
 */
export async function originOf(
  kit: Kit,
  request: OriginRequest,
  options: Pick<ResolveOptions, 'onProgress' | 'signal'>,
): Promise<Origin> {
  const { spec, snapshot } = request;
  if (snapshot !== undefined) return await fromSnapshot(kit, spec, snapshot);
  const image = await kit.images.resolve(spec.image.reference, {
    pullPolicy: spec.pull_policy ?? 'if_missing',
    auth: request.registryAuth ?? null,
    scope: request.imageScope ?? null,
    maxHeldBytes: request.maxHeldBytes ?? null,
    ...options,
  });
  return fromImage(kit, spec, image);
}

export function fromImage(kit: Kit, spec: SandboxSpec, image: Image): Origin {
  const createDisk = (handle: string, signal: AbortSignal, disk?: NewDisk) =>
    kit.rootfs.createDisk(handle, diskSizeMib(spec), signal, disk);
  return { spec, image, createDisk };
}

/** How large the disk of a sandbox with this spec is. */
export function diskSizeMib(spec: SandboxSpec): number {
  return spec.resources?.disk_size_mib ?? DEFAULT_DISK_MIB;
}

async function fromSnapshot(kit: Kit, spec: SandboxSpec, id: string): Promise<Origin> {
  const snapshot = kit.snapshots.get(id);
  const { reference } = snapshot.image;
  const sizeMib = spec.resources?.disk_size_mib ?? snapshot.diskSizeMib;
  if (sizeMib < snapshot.diskSizeMib) throw tooSmall(snapshot.diskSizeMib);
  // The snapshot holds its image, so this happens only after files were removed by hand.
  const image = (await kit.images.get(snapshot.image.id)) ?? missingImage(reference);
  const resources = { vcpus: DEFAULT_VCPUS, memory_mib: DEFAULT_MEMORY_MIB, ...spec.resources };
  return {
    spec: {
      ...spec,
      image: { ...spec.image, reference },
      resources: { ...resources, disk_size_mib: sizeMib },
    },
    image,
    createDisk: (handle, signal) =>
      kit.snapshots.read(id, (disk) => kit.rootfs.restoreDisk(handle, disk, sizeMib, signal)),
  };
}

function tooSmall(leastMib: number): PlatformError {
  const field = 'resources.disk_size_mib';
  const reason = `the disk of the snapshot has ${leastMib} MiB; ask for as much or more, or leave it out`;
  return new PlatformError('invalid_sandbox_config', `${field}: ${reason}`, { details: { field, reason } });
}

function missingImage(reference: string): never {
  const message = `The image ${reference} that the snapshot was made on is not on this host any more`;
  throw new PlatformError('image_not_found', message, { details: { reference } });
}
