import { PlatformError } from '@svc/contract';
import type { VolumeStore } from '../orchestrator/volume-store.ts';
import type { VolumeRecord } from '../store/volumes.ts';
import { eachLimited } from '../tasks/each-limited.ts';

const MAX_AT_ONCE = 8;
const TIMEOUT_MS = 2000;
const NOBODYS_ID = '00000000-0000-0000-0000-000000000000';

/** The bytes that volumes hold now, by id. Volumes that do not answer in time are missing. */
export async function measureVolumes(
  { volumeStore }: { readonly volumeStore: Pick<VolumeStore, 'volumeUsage'> },
  volumes: readonly VolumeRecord[],
  signal: AbortSignal,
): Promise<ReadonlyMap<string, number>> {
  const bounded = AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS)]);
  const usedBytes = new Map<string, number>();
  const measurable = volumes.filter(({ isMade, status }) => isMade && status === 'active');
  try {
    await eachLimited(measurable, MAX_AT_ONCE, async ({ id }) => {
      try {
        usedBytes.set(id, (await volumeStore.volumeUsage(id, bounded)).usedBytes);
      } catch (error) {
        // The engine has lost this one, or is removing it; the others can still be measured.
        if (!PlatformError.is(error, 'volume_not_found')) throw error;
      }
    });
  } catch {
    // The engine is away or busy: a list of volumes without their usage is better than none.
  }
  return usedBytes;
}

/** For calls that record work for the engine. @throws PlatformError `orchestrator_unreachable` */
export async function requireReachable(
  volumeStore: Pick<VolumeStore, 'volumeUsage'>,
  signal: AbortSignal,
): Promise<void> {
  try {
    await volumeStore.volumeUsage(NOBODYS_ID, signal);
  } catch (error) {
    if (!PlatformError.is(error, 'volume_not_found')) throw error;
  }
}
