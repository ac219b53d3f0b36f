import type { SpaceUser } from '../client/engine-api.ts';
import type { Kit } from '../sandboxes/kit.ts';
import type { Sandboxes } from '../sandboxes/sandboxes.ts';

/** Who takes how much of the host's disk, most first. One file is looked at for each of them. */
export async function listSpaceUsers(
  { rootfs, volumes, snapshots, images }: Pick<Kit, 'rootfs' | 'volumes' | 'snapshots' | 'images'>,
  sandboxes: Sandboxes,
): Promise<readonly SpaceUser[]> {
  const users: SpaceUser[] = [];
  for (const { record } of sandboxes.list()) {
    users.push({ kind: 'sandbox', id: record.id ?? '', bytes: rootfs.storedBytes(record.handle) });
  }
  for (const { id } of await volumes.list())
    users.push({ kind: 'volume', id, bytes: await volumes.storedBytes(id) });
  for (const { id, storedBytes } of snapshots.list())
    users.push({ kind: 'snapshot', id, bytes: storedBytes });
  for (const { id, sizeBytes } of await images.list()) users.push({ kind: 'image', id, bytes: sizeBytes });
  return users.toSorted((a, b) => b.bytes - a.bytes);
}
