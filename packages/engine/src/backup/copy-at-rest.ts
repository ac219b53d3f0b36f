import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, stat, statfs } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { isErrno } from '@svc/contract/errno';
import { PlatformError } from '@svc/contract/errors';
import { copyDisk } from '../rootfs/copy-disk.ts';
import { devicesByImage } from '../space/disk-limit.ts';
import { usualReserve } from '../space/host-space.ts';

/** What a sandbox that writes waits for at most; a copy that takes longer fails. */
const MAX_FROZEN_SECONDS = 120;
/** `st_blocks` counts these, whatever the file system's own block size. */
const STAT_BLOCK_BYTES = 512;
/** What the shell below ends with when it could not freeze: a snapshot of the same disk is being taken. */
const BUSY_STATUS = 75;
const BUSY_WAIT_MS = 60_000;
const BUSY_LOOK_MS = 100;

/**
 * Freezes a file system while its image is copied. SAFETY: whatever becomes of the copy, or of this shell, the file system is thawed:
 * by the shell, or by the one behind it that waits. Both are of a session of their own, so Ctrl-C does not reach them.
 * What somebody else has frozen is theirs to thaw. The device is mounted once more, where nobody sees it, because the mount that a sandbox uses is an overlay, which cannot be frozen.
 */
const COPY_FROZEN = `
mount -t ext4 -o nodev,nosuid,noexec "/dev/$1" "$2" || exit 1
thaw() { [ ! -e "$2.frozen" ] || fsfreeze -u "$2"; rm -f "$2.frozen"; }
trap 'thaw "$@"' EXIT
trap 'exit 1' TERM INT HUP
( trap 'kill "$waiting"' TERM; sleep "$5" & waiting=$!; wait; thaw "$@" ) >/dev/null 2>&1 & guard=$!
touch "$2.frozen"
fsfreeze -f "$2" || { rm "$2.frozen"; kill "$guard"; wait "$guard"; exit ${BUSY_STATUS}; }
timeout -s KILL "$5" cp --reflink=auto --sparse=auto -- "$3" "$4"; status=$?
thaw "$@"; kill "$guard"; wait "$guard"; umount "$2"
exit "$status"
`;

/**
 * Copies the image of a file system, mounted or not, into `folder`, as it was at one moment. A sandbox that writes to it waits meanwhile,
 * and its reader finds no difference. @returns the copy; undefined when the image is gone
 */
export async function copyAtRest(
  image: string,
  folder: string,
  signal: AbortSignal,
): Promise<string | undefined> {
  const copy = join(folder, 'copy.img');
  try {
    await requireRoom(image, folder);
    const device = devicesByImage().get(image);
    if (device === undefined) await copyDisk(image, copy, signal);
    else await copyFrozen(device, image, copy, join(folder, 'mount'));
    return copy;
  } catch (error) {
    if (isErrno(error, 'ENOENT')) return undefined;
    // It may have been started or stopped since we looked, or removed.
    if (!(await exists(image))) return undefined;
    throw error;
  }
}

async function copyFrozen(device: string, image: string, copy: string, mountPoint: string): Promise<void> {
  await mkdir(mountPoint, { recursive: true, mode: 0o700 });
  const deadline = performance.now() + BUSY_WAIT_MS;
  for (;;) {
    const { status, said } = await runCopy([device, mountPoint, image, copy, String(MAX_FROZEN_SECONDS)]);
    if (status === 0) return;
    const isBusy = status === BUSY_STATUS && performance.now() < deadline;
    if (isBusy) {
      await delay(BUSY_LOOK_MS);
      continue;
    }
    const reason = status === 137 ? `it took longer than ${MAX_FROZEN_SECONDS} s` : said.trim();
    const message = `${basename(image)} of a running sandbox could not be copied (${reason}); stop the sandbox, or leave disks out with --no-disks`;
    throw new PlatformError('unavailable', message);
  }
}

async function runCopy(
  args: readonly string[],
): Promise<{ readonly status: number | null; readonly said: string }> {
  // SAFETY: no shell reads the arguments as commands; all are paths of ours, or a name that the kernel gave.
  const words = ['--mount', '--propagation', 'private', 'sh', '-c', COPY_FROZEN, 'sh'];
  const child = spawn('unshare', [...words, ...args], {
    stdio: ['ignore', 'ignore', 'pipe'],
    env: { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', LC_ALL: 'C' },
    detached: true,
  });
  let said = '';
  child.stderr.on('data', (chunk: Buffer) => (said = (said + chunk.toString()).slice(-2000)));
  const [status] = (await once(child, 'exit')) as [number | null];
  return { status, said };
}

/** Sandboxes must not run out of room because of a copy. */
async function requireRoom(image: string, folder: string): Promise<void> {
  const { blocks: taken } = await stat(image);
  const { bavail, blocks, bsize } = await statfs(folder);
  if (bavail * bsize - taken * STAT_BLOCK_BYTES > usualReserve(blocks * bsize)) return;
  throw new PlatformError(
    'insufficient_storage',
    'there is too little room for a copy of a disk, which is made before it goes into the backup; free some, or leave disks out with --no-disks',
  );
}

async function exists(path: string): Promise<boolean> {
  return await stat(path).then(
    () => true,
    () => false,
  );
}
