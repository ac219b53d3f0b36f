import { PlatformError } from '@svc/contract';
import type { VolumeStore } from '../orchestrator/volume-store.ts';
import type { Database } from '../store/database.ts';
import { markMade, type VolumeRecord } from '../store/volumes.ts';

const MIB_PER_GIB = 1024;
const MAKE_TIMEOUT_MS = 60_000;

export interface VolumeMaker {
  readonly database: Database;
  readonly volumeStore: VolumeStore;
  /** Size of volumes without a cap of their own. Their images are sparse: unused space is not allocated. */
  readonly defaultVolumeGib: number;
}

/**
 * Makes sure that a recorded volume exists in the engine. It is called before every use. Without a signal it goes on when the caller
 * disconnects.
 * @throws PlatformError `volume_not_found` when it is deleted meanwhile
 */
export async function ensureMade(
  maker: VolumeMaker,
  volume: VolumeRecord,
  signal?: AbortSignal,
): Promise<void> {
  if (volume.isMade) return;
  const { database, volumeStore } = maker;
  const deadline = AbortSignal.timeout(MAKE_TIMEOUT_MS);
  const bounded = signal === undefined ? deadline : AbortSignal.any([signal, deadline]);
  try {
    await volumeStore.createVolume(volume.id, capacityMibOf(maker, volume), bounded);
  } catch (error) {
    // Made by another server with an older capacity; the reconciler brings it to the recorded one.
    if (!PlatformError.is(error, 'name_already_exists')) throw error;
  }
  if (await markMade(database, volume.id)) return;
  await volumeStore.removeVolume(volume.id);
  throw volumeNotFound(volume.id);
}

export function capacityMibOf(
  { defaultVolumeGib }: Pick<VolumeMaker, 'defaultVolumeGib'>,
  { capacityGib }: Pick<VolumeRecord, 'capacityGib'>,
): number {
  return (capacityGib ?? defaultVolumeGib) * MIB_PER_GIB;
}

export function volumeNotFound(id: string): PlatformError {
  return new PlatformError('volume_not_found', `there is no volume ${id}`, { details: { volume_id: id } });
}
