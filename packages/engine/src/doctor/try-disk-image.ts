import { mkdir, statfs } from 'node:fs/promises';
import { join } from 'node:path';
import type { HostCalls } from '../host/host-calls.ts';
import { formatDisk } from '../rootfs/format-disk.ts';

const SIZE_MIB = 16;

/** Mounts a small disk and looks whether it has the size that was asked for. */
export async function tryDiskImage(means: {
  readonly hostCalls: HostCalls;
  readonly folder: string;
}): Promise<void> {
  const { hostCalls } = means;
  await using undo = new AsyncDisposableStack();
  const at = (name: string) => join(means.folder, 'disk', name);
  await mkdir(at('content'), { recursive: true });
  await mkdir(at('target'));
  await formatDisk(at('image'), at('content'), SIZE_MIB);
  undo.defer(() => hostCalls.unmount(at('target')));
  await hostCalls.mountImage({ image: at('image'), target: at('target'), fstype: 'ext4', readonly: false });
  const { blocks, bsize } = await statfs(at('target'));
  if (blocks * bsize > 2 * SIZE_MIB * 1024 * 1024)
    throw new Error('the mounted disk is larger than its image');
}
