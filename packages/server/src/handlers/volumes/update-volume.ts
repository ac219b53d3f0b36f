import { PlatformError } from '@svc/contract';
import type { Database } from '../../store/database.ts';
import { updateVolume, type VolumeRecord } from '../../store/volumes.ts';
import { checkVolumeQuota } from '../../accounting/check-quotas.ts';
import { capacityMibOf, type VolumeMaker } from '../../volumes/make-volume.ts';
import { measureVolumes } from '../../volumes/measure-volumes.ts';
import type { RestCall } from '../../dispatch/rest-call.ts';
import type { RestHandlers } from '../../dispatch/rest-handlers.ts';
import {
  requireActive,
  requireBelowCap,
  requireFreeLabels,
  requireVersion,
  requireVolume,
} from './volume-checks.ts';
import { toVolumeView } from './volume-view.ts';

const MIB = 1024 * 1024;
const RESIZE_TIMEOUT_MS = 120_000;

export interface VolumeParts extends VolumeMaker {
  /** Notified when a volume is to be made, resized or removed. */
  readonly volumeReconciler: { wake(): void };
}

/**
 * Resizes in the engine first, because it may refuse; the record is authoritative afterwards. If the two differ, because this process
 * ended in between or another call changed the volume, the reconciler brings the engine to the record.
 */
export function updateHandler(parts: VolumeParts): RestHandlers['volumes.update'] {
  return async ({ params, body }, call) => {
    const { capacity_gib: capacityGib, labels } = body;
    if (labels !== undefined) requireFreeLabels(labels);
    const check = (volume: VolumeRecord) => {
      if (volume.kind === 'host' && typeof capacityGib === 'number') {
        throw new PlatformError('invalid_request', 'the host volume cannot be capped', { isConflict: true });
      }
      requireActive(volume);
      requireVersion(call, volume);
      return volume;
    };
    const before = check(await requireVolume(parts.database, call, params.id));
    const isResized = capacityGib !== undefined && capacityGib !== before.capacityGib;
    await requireBelowCap(parts.database, call, capacityGib ?? null);
    // Checked before the engine resizes it: space that was filled meanwhile could not be taken back.
    await checkGrowth(parts.database, call, before, capacityGib);
    if (isResized && before.isMade) await resize(parts, before, capacityGib);
    // Also when a later step fails: then the engine goes back to the recorded size.
    using _brought = { [Symbol.dispose]: () => isResized && parts.volumeReconciler.wake() };
    const after = await call.commit(
      async ({ db, record }) => {
        const volume = check(await requireVolume(db, call, params.id));
        await checkGrowth(db, call, volume, capacityGib);
        await record({
          type: 'volume_updated',
          category: 'volume',
          payload: { volume_id: volume.id, name: volume.name, ...body },
        });
        return await updateVolume(db, volume.id, {
          ...(capacityGib === undefined ? {} : { capacityGib }),
          ...(labels === undefined ? {} : { labels }),
        });
      },
      (volume) => toVolumeView(volume, null),
    );
    call.setHeader('etag', `"${after.version}"`);
    const usedBytes = await measureVolumes(parts, [after], call.signal);
    return toVolumeView(after, usedBytes.get(after.id) ?? null);
  };
}

async function checkGrowth(
  db: Database,
  call: RestCall,
  volume: VolumeRecord,
  capacityGib: number | null | undefined,
): Promise<void> {
  const growthGib = (capacityGib ?? 0) - (volume.capacityGib ?? 0);
  if (growthGib > 0) await checkVolumeQuota(db, call.organization, growthGib);
}

/** A volume without a cap gets the default size, or keeps a larger one. */
async function resize(parts: VolumeMaker, volume: VolumeRecord, capacityGib: number | null): Promise<void> {
  const { volumeStore } = parts;
  const signal = AbortSignal.timeout(RESIZE_TIMEOUT_MS);
  const wantedMib = capacityMibOf(parts, { capacityGib });
  const { capacityBytes } = await volumeStore.volumeUsage(volume.id, signal);
  if (capacityGib === null && capacityBytes >= wantedMib * MIB) return;
  await volumeStore.resizeVolume(volume.id, wantedMib, signal);
}
