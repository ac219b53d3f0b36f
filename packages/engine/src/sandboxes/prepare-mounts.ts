import { chown, mkdir, readdir, rm } from 'node:fs/promises';
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
  /** Where disk images may come from: folders that no sandbox can write to. */
  readonly diskImageRoots: readonly string[];
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
  if (wanted.some(({ type }) => type !== 'tmpfs')) await makeStaging(kit, record.handle, slot);
  const prepared: RuntimeMount[] = [];
  for (const [index, mount] of wanted.entries()) {
    signal.throwIfAborted();
    const staging = join(kit.stagingFolder, record.handle, String(index));
    prepared.push(await prepareMount(kit, record, mount, staging, slot, signal));
  }
  return prepared;
}

async function makeStaging(kit: MountKit, handle: string, slot: Slot): Promise<void> {
  const folder = join(kit.stagingFolder, handle);
  await mkdir(kit.stagingFolder, { recursive: true, mode: 0o711 });
  await mkdir(folder, { recursive: true, mode: 0o700 });
  // SAFETY: a runtime looks at the sources as root of the sandbox, which is this user here; no other user of the host may.
  await chown(folder, slot.idBase, slot.idBase);
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
  const named = mounts.flatMap((mount) => (mount.type === 'named' ? [volumeNamed(record, mount.name)] : []));
  const needsHostVolume = mounts.some((mount) => 'host' in mount && !isAbsolute(mount.host));
  return [...new Set(needsHostVolume && record.hostVolume !== null ? [...named, record.hostVolume] : named)];
}

/** The volume that this sandbox's creator means by a name; names like `constructor` are names too. */
function volumeNamed(record: SandboxRecord, name: string): string {
  return (Object.hasOwn(record.volumes, name) ? record.volumes[name] : undefined) ?? name;
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
    // Whatever was asked: no program gains privileges here anyway, and sources are mounted so, which cannot be taken back
    // inside a user namespace.
    nosuid: true,
    nodev: true,
  };
  if (mount.type === 'tmpfs') return { ...common, source: null, sizeMib: mount.size_mib ?? null };
  if (mount.type === 'disk_image') {
    await stageDiskImage(kit, mount, staging, common.readonly, slot);
  } else {
    const source = await sourceOf(kit, record, mount, signal);
    await stage(kit, source, staging, common.readonly, slot, ownerOf(mount));
  }
  return { ...common, source: staging, sizeMib: null };
}

async function sourceOf(
  kit: MountKit,
  record: SandboxRecord,
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
    // Makes the target: a file for a file, a folder for a folder.
    await kit.hostCalls.bind({ ...request, target });
  } catch (error) {
    if (!NOT_THERE.some((errno) => isErrno(error, errno))) throw error;
    const message = `mounts: ${request.path} does not exist inside its root; create it first`;
    throw new PlatformError('invalid_sandbox_config', message, {
      details: { field: 'mounts' },
      cause: error,
    });
  }
}

const NOT_THERE = ['ENOENT', 'ENOTDIR', 'ELOOP', 'EXDEV'];

function isErrno(error: unknown, errno: string): boolean {
  return error instanceof Error && 'errno' in error && error.errno === errno;
}

const DISK_FILE_SYSTEMS: readonly string[] = ['ext4', 'ext3', 'ext2'];

/**
 * SAFETY: the host's kernel reads the image, and a hostile one can take the kernel over. So it must come from a folder that the operator
 * set aside for images; never from a volume or a bind root, which sandboxes write to.
 */
function diskImageSource(kit: MountKit, host: string): Source {
  const root = kit.diskImageRoots.find((allowed) => host.startsWith(`${allowed}/`));
  if (root !== undefined) return { root, path: relative(root, host), isVolume: false };
  const allowed =
    kit.diskImageRoots.length === 0 ? 'it allows none' : `allowed: ${kit.diskImageRoots.join(', ')}`;
  const message =
    `mounts: this host does not let sandboxes mount the disk image ${host} (${allowed}); ` +
    'its operator can set a folder aside for trusted images with `svc engine start --disk-image-root DIR`';
  throw new PlatformError('invalid_sandbox_config', message, { details: { field: 'mounts', host } });
}

async function stageDiskImage(
  kit: MountKit,
  mount: Extract<Mount, { type: 'disk_image' }>,
  staging: string,
  readonly: boolean,
  slot: Slot,
): Promise<void> {
  const source = diskImageSource(kit, mount.host);
  if (mount.format !== 'raw' || !DISK_FILE_SYSTEMS.includes(mount.fstype ?? 'ext4')) {
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
  // The kernel's ext4 reads all three.
  await kit.hostCalls.mountImage({ image: file, target: disk, fstype: 'ext4', readonly });
  await stage(kit, { root: disk, path: '.', isVolume: true }, staging, readonly, slot, ownerOf(mount));
}
