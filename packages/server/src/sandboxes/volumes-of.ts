import { isAbsolute } from 'node:path';
import { PlatformError, type SandboxSpec } from '@svc/contract';
import type { Database, SandboxVolumeRow } from '../store/database.ts';
import { ensureHostVolume, findVolumeByName } from '../store/volumes.ts';

/**
 * The volumes that a spec mounts, by mount path: named ones, and the host volume where a path of the host is relative. Call it in the
 * transaction that makes the sandbox.
 * @throws PlatformError `volume_not_found` naming the volume
 */
export async function volumesOf(
  transaction: Database,
  organizationId: string,
  spec: SandboxSpec,
): Promise<readonly Omit<SandboxVolumeRow, 'sandbox_id'>[]> {
  const rows: Omit<SandboxVolumeRow, 'sandbox_id'>[] = [];
  for (const mount of spec.mounts ?? []) {
    const isInHostVolume = mount.type === 'bind' && !isAbsolute(mount.host);
    if (mount.type !== 'named' && !isInHostVolume) continue;
    const volume = isInHostVolume
      ? await ensureHostVolume(transaction, organizationId)
      : await requireVolume(transaction, organizationId, mount);
    rows.push({
      volume_id: volume.id,
      mount_path: mount.guest,
      is_read_only: mount.options?.readonly === true ? 1 : 0,
    });
  }
  return rows;
}

async function requireVolume(
  transaction: Database,
  organizationId: string,
  mount: { readonly guest: string; readonly name?: string },
): Promise<{ readonly id: string }> {
  const name = mount.name ?? '';
  const volume = await findVolumeByName(transaction, organizationId, name);
  if (volume !== undefined) return volume;
  const message = `There is no volume '${name}' to mount at ${mount.guest}; create it first`;
  throw new PlatformError('volume_not_found', message, { details: { volume: name } });
}
