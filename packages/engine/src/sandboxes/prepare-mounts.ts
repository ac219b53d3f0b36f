import { mkdir, readdir, rm, writeFile } from 'node:fs/promises';
import { isAbsolute, join, relative } from 'node:path';
import { normalizeGuestPath, PlatformError, type Mount } from '@svc/contract';
import type { HostCalls } from '../host/host-calls.ts';
import type { Slot } from '../network/network.ts';
import type { RuntimeMount } from '../runtime/runtime.ts';
import type { Volumes } from '../volumes/volumes.ts';
import type { SandboxRecord } from './record.ts';

export interface MountKit {
  readonly hostCalls: HostCalls;
  readonly volumes: Volumes;
  readonly bindRoots: readonly string[];
  /** Where sources are put so that only the engine can change what a path means. */
  readonly stagingFolder: string;
}

type Source = { readonly root: string; readonly path: string; readonly isVolume: boolean };

/**
 * Turns the mounts of a spec into paths that a runtime can mount. Each source is resolved inside its root by the kernel and
 * bound to a staging path of ours, so a symlink planted later cannot redirect it.
 */
export async function prepareMounts(
  kit: MountKit,
  record: SandboxRecord,
  slot: Slot,
  signal: AbortSignal,
): Promise<RuntimeMount[]> {
  const wanted = (record.spec.mounts ?? []).toSorted((a, b) => a.guest.length - b.guest.length);
  const prepared: RuntimeMount[] = [];
  for (const [index, mount] of wanted.entries()) {
    signal.throwIfAborted();
    const staging = join(kit.stagingFolder, record.handle, String(index));
    prepared.push(await prepareMount(kit, record, mount, staging, slot, signal));
  }
  return prepared;
}

/** Undoes the staging; what the sandbox has mounted stays mounted there. Can be repeated. */
export async function releaseStaging(kit: MountKit, handle: string): Promise<void> {
  const folder = join(kit.stagingFolder, handle);
  const names = await readdir(folder).catch(() => []);
  for (const name of names) await kit.hostCalls.unmount(join(folder, name));
  await rm(folder, { recursive: true, force: true });
}

/** Gives the volumes back. Can be repeated. */
export async function releaseVolumes(kit: MountKit, record: SandboxRecord): Promise<void> {
  for (const id of volumesOf(record)) await kit.volumes.detach(id, record.handle);
}

export function volumesOf(record: SandboxRecord): string[] {
  const mounts = record.spec.mounts ?? [];
  const named = mounts.flatMap((mount) =>
    mount.type === 'named' ? [record.volumes[mount.name] ?? mount.name] : [],
  );
  const needsHostVolume = mounts.some((mount) => 'host' in mount && !isAbsolute(mount.host));
  return [...new Set(needsHostVolume && record.hostVolume !== null ? [...named, record.hostVolume] : named)];
}

async function prepareMount(
  kit: MountKit,
  record: SandboxRecord,
  mount: Mount,
  staging: string,
  slot: Slot,
  signal: AbortSignal,
): Promise<RuntimeMount> {
  const options = mount.options ?? {};
  const common = {
    // `checkSpec` has refused paths that climb.
    destination: normalizeGuestPath(mount.guest) ?? mount.guest,
    readonly: options.readonly ?? false,
    noexec: options.noexec ?? false,
    nosuid: (options.nosuid ?? false) || record.spec.security_profile === 'restricted',
    nodev: true,
  };
  if (mount.type === 'tmpfs') return { ...common, source: null, sizeMib: mount.size_mib ?? null };
  const source = await sourceOf(kit, record, mount, signal);
  if (mount.type === 'disk_image') await stageDiskImage(kit, mount, source, staging, common.readonly, slot);
  else await stage(kit, source, staging, common.readonly, slot, ownerOf(mount));
  return { ...common, source: staging, sizeMib: null };
}

async function sourceOf(
  kit: MountKit,
  record: SandboxRecord,
  mount: Mount,
  signal: AbortSignal,
): Promise<Source> {
  if (mount.type === 'named') {
    const id = record.volumes[mount.name] ?? mount.name;
    return { root: await kit.volumes.attach(id, record.handle, signal), path: '.', isVolume: true };
  }
  if (!('host' in mount)) throw new Error(`a ${mount.type} mount has no source`);
  return await hostSource(kit, record, mount.host, signal);
}

/** Where a `host` path of a spec lies: inside the host volume when relative, inside an allowed root when absolute. */
export async function hostSource(
  kit: MountKit,
  record: SandboxRecord,
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
  const root = kit.bindRoots.find((allowed) => host === allowed || host.startsWith(`${allowed}/`));
  if (root === undefined) {
    const allowed = kit.bindRoots.length === 0 ? 'none is allowed' : `allowed: ${kit.bindRoots.join(', ')}`;
    const message = `mounts: ${host} is not inside a folder that this host lets sandboxes mount (${allowed})`;
    throw new PlatformError('invalid_sandbox_config', message, { details: { field: 'mounts', host } });
  }
  return { root, path: relative(root, host) || '.', isVolume: false };
}

type Owner = { readonly uid: number; readonly gid: number } | null;

function ownerOf(mount: Mount): Owner {
  const { override_uid: uid, override_gid: gid } = mount.options ?? {};
  return typeof uid === 'number' && typeof gid === 'number' ? { uid, gid } : null;
}

async function stage(
  kit: MountKit,
  source: Source,
  staging: string,
  readonly: boolean,
  slot: Slot,
  owner: Owner,
): Promise<void> {
  // A volume stores guest ids and needs the whole range; a host folder belongs to one host user, who appears as one guest user.
  const shown = owner ?? (source.isVolume ? null : { uid: 0, gid: 0 });
  await bindAt(kit, staging, {
    root: source.root,
    path: source.path,
    readonly,
    idmap: { userPath: slot.userNamespace, idBase: slot.idBase, owner: shown },
  });
}

async function bindAt(
  kit: MountKit,
  target: string,
  request: Omit<Parameters<HostCalls['bind']>[0], 'target'>,
): Promise<void> {
  try {
    await mkdir(target, { recursive: true, mode: 0o700 });
    await kit.hostCalls.bind({ ...request, target }).catch(async (error: unknown) => {
      if (!isErrno(error, 'ENOTDIR')) throw error;
      // The source is a file: it needs a file to be bound on.
      await rm(target, { recursive: true, force: true });
      await writeFile(target, '');
      await kit.hostCalls.bind({ ...request, target });
    });
  } catch (error) {
    if (!isErrno(error, 'ENOENT') && !isErrno(error, 'ELOOP') && !isErrno(error, 'EXDEV')) throw error;
    const message = `mounts: ${request.path} does not exist inside its root; create it first`;
    throw new PlatformError('invalid_sandbox_config', message, {
      details: { field: 'mounts' },
      cause: error,
    });
  }
}

function isErrno(error: unknown, errno: string): boolean {
  return error instanceof Error && 'errno' in error && error.errno === errno;
}

const DISK_FILE_SYSTEMS = ['ext4', 'ext3', 'ext2'] as const;

async function stageDiskImage(
  kit: MountKit,
  mount: Extract<Mount, { type: 'disk_image' }>,
  source: Source,
  staging: string,
  readonly: boolean,
  slot: Slot,
): Promise<void> {
  const fstype = DISK_FILE_SYSTEMS.find((known) => known === (mount.fstype ?? 'ext4'));
  if (mount.format !== 'raw' || fstype === undefined) {
    const message =
      `mounts: a disk image must be raw with ${DISK_FILE_SYSTEMS.join(', ')}, not ${mount.format} with ${mount.fstype ?? 'ext4'}; ` +
      `convert it with \`qemu-img convert -O raw ${mount.host} ${mount.host}.raw\``;
    throw new PlatformError('invalid_sandbox_config', message, {
      details: { field: 'mounts', host: mount.host },
    });
  }
  const file = `${staging}-file`;
  const disk = `${staging}-disk`;
  await bindAt(kit, file, { root: source.root, path: source.path, readonly, idmap: null });
  await mkdir(disk, { recursive: true, mode: 0o700 });
  await kit.hostCalls.mountImage({ image: file, target: disk, fstype, readonly });
  await stage(kit, { root: disk, path: '.', isVolume: true }, staging, readonly, slot, ownerOf(mount));
}
