import { existsSync } from 'node:fs';
import { mkdir, readdir, rm } from 'node:fs/promises';
import { basename, isAbsolute, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { Mount } from '@svc/contract';
import { PlatformError } from '@svc/contract/errors';
import { HostCallError, type HostCalls } from '../host/host-calls.ts';
import { placeIn, reachableRoots } from './host-roots.ts';
import { bindAt, explained, stageSource, type Reasons, type Source, type Stage } from './stage-source.ts';

export interface DiskImageKit {
  readonly hostCalls: HostCalls;
  /** Where disk images may come from: folders that no sandbox can write to. */
  readonly diskImageRoots: readonly string[];
  /** Where raw copies of images in other formats are made; each is deleted once it is mounted. */
  readonly rawCopyFolder: string;
}

export type DiskImageMount = Extract<Mount, { type: 'disk_image' }>;

/** Mounts a disk image and puts its root where a runtime finds it. */
export async function stageDiskImage(
  kit: DiskImageKit,
  mount: DiskImageMount,
  { handle, hostFolder, ...stage }: Stage & { readonly handle: string; readonly hostFolder: string | null },
  signal: AbortSignal,
): Promise<void> {
  const source = diskImageSource(kit, mount.host, hostFolder);
  checkDiskImage(mount);
  const readonly = mount.options?.readonly ?? false;
  const { staging } = stage;
  await using undo = new AsyncDisposableStack();
  const bindImage = (target: string): Promise<void> =>
    bindAt(kit.hostCalls, target, { root: source.root, path: source.path, readonly, idmap: null });
  let image = `${staging}-file`;
  if (mount.format === 'raw') {
    await bindImage(image);
  } else {
    const folder = join(kit.rawCopyFolder, `${handle}-${basename(staging)}`);
    await mkdir(folder, { recursive: true, mode: 0o700 });
    // The mount keeps the copy alive and takes it along when it ends.
    undo.defer(() => removeCopy(kit, folder));
    const path = foreignImageIn(folder);
    await bindImage(path);
    // Loaded on demand: few sandboxes have such an image.
    const { convertToRaw } = await import('./convert-to-raw.ts');
    image = await convertToRaw({ folder, path, format: mount.format, host: mount.host }, signal);
  }
  const disk = `${staging}-disk`;
  await mkdir(disk, { recursive: true, mode: 0o700 });
  // The ext4 driver reads ext2 and ext3 too.
  await mountWhenFree(kit.hostCalls, { image, target: disk, fstype: 'ext4', readonly }, signal).catch(
    (error: unknown) => Promise.reject(explained(error, mount.host, IMAGE_REASONS)),
  );
  await stageSource(kit.hostCalls, { root: disk, path: '.', isVolume: true }, mount, stage);
}

const BUSY_WAIT_MS = 2000;
const BUSY_POLL_MS = 20;

/** Retries: a mount can outlive its sandbox for a moment, for instance while another process copies a mount namespace. */
async function mountWhenFree(
  calls: HostCalls,
  request: Parameters<HostCalls['mountImage']>[0],
  signal: AbortSignal,
): Promise<void> {
  const deadline = performance.now() + BUSY_WAIT_MS;
  for (;;) {
    try {
      return await calls.mountImage(request);
    } catch (error) {
      const isBusy = error instanceof HostCallError && error.errno === 'EBUSY';
      if (!isBusy || performance.now() > deadline) throw error;
      await delay(BUSY_POLL_MS, undefined, { signal });
    }
  }
}

/** Where the image is bound, in the folder of its copy. */
function foreignImageIn(folder: string): string {
  return join(folder, 'image');
}

const IMAGE_REASONS: Reasons = [
  {
    errnos: ['EINVAL'],
    code: 'invalid_sandbox_config',
    says: 'holds no ext4, ext3 or ext2 file system; one in a partition cannot be mounted, copy it out first',
  },
  {
    errnos: ['EUCLEAN', 'EROFS'],
    code: 'invalid_sandbox_config',
    says: 'was not unmounted cleanly; check it with `e2fsck -p` first',
  },
  {
    errnos: ['EBUSY'],
    code: 'unavailable',
    says: 'is mounted by another sandbox; stop that one, or mount it read-only in both',
  },
];

/** Deletes copies that a start left behind when the engine was killed. Can be repeated. */
export async function releaseDiskImages(kit: DiskImageKit, handle: string): Promise<void> {
  // Most engines never have one.
  const names = existsSync(kit.rawCopyFolder) ? await readdir(kit.rawCopyFolder) : [];
  for (const name of names.filter((each) => each.startsWith(`${handle}-`))) {
    await removeCopy(kit, join(kit.rawCopyFolder, name));
  }
}

async function removeCopy(kit: DiskImageKit, folder: string): Promise<void> {
  await kit.hostCalls.unmount(foreignImageIn(folder));
  // SAFETY: a folder of our own naming directly under ours; what was bound in it is detached.
  await rm(folder, { recursive: true, force: true });
}

/**
 * SAFETY: the host's kernel reads the image, and a hostile one can take the kernel over. So it must come from a folder that the operator
 * set aside for images; never from a volume or a bind root, which sandboxes write to.
 * A relative path is looked up in the first root that there is.
 */
export function diskImageSource(
  kit: Pick<DiskImageKit, 'diskImageRoots'>,
  host: string,
  hostFolder: string | null,
): Source {
  const roots = reachableRoots(kit.diskImageRoots, hostFolder);
  const [first] = roots;
  if (first !== undefined && !isAbsolute(host)) return { root: first, path: host, isVolume: false };
  const source = placeIn(roots, host);
  if (source !== undefined) return source;
  const allowed = roots.length === 0 ? 'it allows none' : `allowed: ${roots.join(', ')}`;
  const message =
    `mounts: this host does not let sandboxes mount the disk image ${host} (${allowed}); ` +
    'its operator can set a folder aside for trusted images with `svc engine start --disk-image-root DIR`';
  throw new PlatformError('invalid_sandbox_config', message, { details: { field: 'mounts', host } });
}

const DISK_FILE_SYSTEMS: readonly string[] = ['ext4', 'ext3', 'ext2'];

/** Refuses images that cannot be mounted this way. @throws PlatformError `invalid_sandbox_config` */
export function checkDiskImage({ format, fstype, host, options }: DiskImageMount): void {
  if (!DISK_FILE_SYSTEMS.includes(fstype ?? 'ext4')) {
    throw refusal(host, `a disk image must hold ${DISK_FILE_SYSTEMS.join(', ')}, not ${fstype ?? ''}`);
  }
  if (format !== 'raw' && options?.readonly !== true) {
    // Writes would go to the copy and be lost.
    const remedy = `set readonly, or convert it once with \`qemu-img convert -O raw ${host} ${host}.raw\``;
    throw refusal(host, `a ${format} image cannot be written to; ${remedy}`);
  }
}

function refusal(host: string, reason: string): PlatformError {
  return new PlatformError('invalid_sandbox_config', `mounts: ${reason}`, {
    details: { field: 'mounts', host },
  });
}
