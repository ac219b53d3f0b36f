import { chownSync, existsSync, mkdirSync, readdirSync } from 'node:fs';
import { isAbsolute, join } from 'node:path';
import type { Mount } from '@svc/contract';
import { PlatformError } from '@svc/contract/errors';
import { normalizeGuestPath } from '@svc/contract/spec';
import { removeTree } from '../host/run-files.ts';
import type { Slot } from '../network/network.ts';
import type { RuntimeMount } from '../runtime/runtime.ts';
import type { Volumes } from '../volumes/volumes.ts';
import { placeIn, reachableRoots } from './host-roots.ts';
import type { EngineRecord } from './record.ts';
import { releaseDiskImages, stageDiskImage, type DiskImageKit } from './stage-disk-image.ts';
import { ownerOf, stageSource, type Source } from './stage-source.ts';

export interface MountKit extends DiskImageKit {
  readonly volumes: Volumes;
  readonly bindRoots: readonly string[];
  /** A folder that only the engine can change; sources are bound here before they are mounted. */
  readonly stagingFolder: string;
}

/**
 * Turns the mounts of a spec into paths that a runtime can mount. The kernel resolves each source inside its root, and it is bound to a
 * staging path of ours, so a symlink planted later cannot redirect it.
 */
export async function prepareMounts(
  kit: MountKit,
  record: EngineRecord,
  slot: Slot,
  signal: AbortSignal,
): Promise<RuntimeMount[]> {
  const wanted = (record.spec.mounts ?? []).toSorted((a, b) => a.guest.length - b.guest.length);
  if (wanted.some(({ type }) => type !== 'tmpfs')) makeStaging(kit, record.handle, slot);
  const prepared: RuntimeMount[] = [];
  for (const [index, mount] of wanted.entries()) {
    signal.throwIfAborted();
    const staging = join(kit.stagingFolder, record.handle, String(index));
    prepared.push(await prepareMount(kit, record, mount, staging, slot, signal));
  }
  return prepared;
}

function makeStaging(kit: MountKit, handle: string, slot: Slot): void {
  const folder = join(kit.stagingFolder, handle);
  mkdirSync(kit.stagingFolder, { recursive: true, mode: 0o711 });
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  // SAFETY: a runtime reads the sources as root of the sandbox, which is this user here; no other user of the host may.
  chownSync(folder, slot.idBase, slot.idBase);
}

/** Undoes the staging; mounts inside the sandbox stay. Can be repeated. */
export async function releaseStaging(kit: MountKit, handle: string): Promise<void> {
  const folder = join(kit.stagingFolder, handle);
  if (existsSync(folder)) {
    for (const name of readdirSync(folder)) await kit.hostCalls.unmount(join(folder, name));
    removeTree(folder);
  }
  await releaseDiskImages(kit, handle);
}

/** Releases the volumes. Can be repeated. */
export async function releaseVolumes(kit: MountKit, record: EngineRecord): Promise<void> {
  for (const id of volumesOf(record)) await kit.volumes.detach(id, record.handle);
}

export function volumesOf(record: EngineRecord): string[] {
  const mounts = record.spec.mounts ?? [];
  const named = mounts.flatMap((mount) => (mount.type === 'named' ? [volumeNamed(record, mount.name)] : []));
  const needsHostVolume = mounts.some((mount) => mount.type === 'bind' && !isAbsolute(mount.host));
  return [...new Set(needsHostVolume && record.hostVolume !== null ? [...named, record.hostVolume] : named)];
}

/** The volume behind a name in the spec; `constructor` is a valid name. */
function volumeNamed(record: EngineRecord, name: string): string {
  return (Object.hasOwn(record.volumes, name) ? record.volumes[name] : undefined) ?? name;
}

async function prepareMount(
  kit: MountKit,
  record: EngineRecord,
  mount: Mount,
  staging: string,
  slot: Slot,
  signal: AbortSignal,
): Promise<RuntimeMount> {
  const options = mount.options ?? {};
  const common = {
    // `checkSpec` has refused paths with `..`.
    destination: normalizeGuestPath(mount.guest) ?? mount.guest,
    readonly: options.readonly ?? false,
    noexec: options.noexec ?? false,
    // Always: no program gains privileges here anyway, and sources are mounted `nosuid`, which a user namespace cannot undo.
    nosuid: true,
    nodev: true,
  };
  if (mount.type === 'tmpfs')
    return { ...common, source: null, sizeMib: mount.size_mib ?? null, owner: ownerOf(mount) };
  if (mount.type === 'disk_image') {
    const { handle, hostFolder } = record;
    await stageDiskImage(kit, mount, { handle, hostFolder, staging, slot }, signal);
  } else {
    const source = await sourceOf(kit, record, mount, signal);
    await stageSource(kit.hostCalls, source, mount, { staging, slot });
  }
  return { ...common, source: staging, sizeMib: null, owner: null };
}

async function sourceOf(
  kit: MountKit,
  record: EngineRecord,
  mount: Mount,
  signal: AbortSignal,
): Promise<Source> {
  if (mount.type === 'named') {
    const id = volumeNamed(record, mount.name);
    return { root: await kit.volumes.attach(id, record.handle, signal), path: '.', isVolume: true };
  }
  if (!('host' in mount)) throw new Error(`a ${mount.type} mount has no source`);
  return await hostSource(kit, record, mount.host, signal);
}

/** Resolves a `host` path of a spec: inside the host volume when relative, inside an allowed root when absolute. */
export async function hostSource(
  kit: MountKit,
  record: EngineRecord,
  host: string,
  signal: AbortSignal,
): Promise<Source> {
  if (!isAbsolute(host)) {
    if (record.hostVolume === null) {
      const message = `mounts: ${host} is relative to the host volume, and this sandbox has none; give an absolute path`;
      throw new PlatformError('invalid_sandbox_config', message, { details: { field: 'mounts', host } });
    }
    return {
      root: await kit.volumes.attach(record.hostVolume, record.handle, signal),
      path: host,
      isVolume: true,
    };
  }
  return bindSource(kit, host, record.hostFolder);
}

/** Resolves an absolute path of a caller. @throws PlatformError `invalid_sandbox_config` when it may not be mounted */
export function bindSource(
  kit: Pick<MountKit, 'bindRoots'>,
  host: string,
  hostFolder: string | null,
): Source {
  const roots = reachableRoots(kit.bindRoots, hostFolder);
  const source = placeIn(roots, host);
  if (source !== undefined) return source;
  const allowed = roots.length === 0 ? 'none is allowed' : `allowed: ${roots.join(', ')}`;
  const message = `mounts: ${host} is not inside a folder that this host lets sandboxes mount (${allowed})`;
  throw new PlatformError('invalid_sandbox_config', message, { details: { field: 'mounts', host } });
}
