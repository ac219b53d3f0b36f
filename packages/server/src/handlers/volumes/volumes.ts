import { PlatformError } from '@svc/contract';
import type { EventType } from '@svc/contract/rest';
import { checkVolumeQuota } from '../../accounting/check-quotas.ts';
import { closeUsage, listUsage } from '../../store/volume-usage.ts';
import {
  addVolume,
  ensureHostVolume,
  listUsers,
  listVolumes,
  updateVolume,
  type VolumeRecord,
} from '../../store/volumes.ts';
import { ensureMade } from '../../volumes/make-volume.ts';
import { measureVolumes, requireReachable } from '../../volumes/measure-volumes.ts';
import type { Change, RestCall } from '../../dispatch/rest-call.ts';
import type { RestHandlers } from '../../dispatch/rest-handlers.ts';
import { updateHandler, type VolumeParts } from './update-volume.ts';
import { requireBelowCap, requireFreeLabels, requireVersion, requireVolume } from './volume-checks.ts';
import { toVolumeMetrics } from './volume-metrics.ts';
import { toVolumeView } from './volume-view.ts';

type VolumeHandlers = Pick<RestHandlers, Extract<keyof RestHandlers, `volumes.${string}`>>;

export function volumeHandlers(parts: VolumeParts): VolumeHandlers {
  return {
    'volumes.list': async (_input, call) => {
      await hostVolume(parts, call);
      const volumes = await listVolumes(parts.database, call.organization.id);
      const usedBytes = await measureVolumes(parts, volumes, call.signal);
      return volumes.map((volume) => toVolumeView(volume, usedBytes.get(volume.id) ?? null));
    },
    'volumes.create': createHandler(parts),
    'volumes.getDefault': async (_input, call) => await show(parts, await hostVolume(parts, call), call),
    'volumes.get': async ({ params }, call) =>
      await show(parts, await requireVolume(parts.database, call, params.id), call),
    'volumes.update': updateHandler(parts),
    'volumes.remove': removeHandler(parts),
    'volumes.metrics': async ({ params, query }, call) => {
      const volume = await requireVolume(parts.database, call, params.id);
      const { range_secs = 3600, step_secs = 30 } = query;
      const end = Date.now();
      const start = end - range_secs * 1000;
      const period = { from: new Date(start).toISOString(), to: new Date(end).toISOString() };
      const intervals = await listUsage(parts.database, volume.id, period);
      return toVolumeMetrics(volume, { start, end, step_secs }, intervals, parts.defaultVolumeGib);
    },
  };
}

/** The engine's volume is made before the answer; if this process ends before that, the reconciler makes it. */
function createHandler(parts: VolumeParts): VolumeHandlers['volumes.create'] {
  return async ({ body }, call) => {
    const { name, capacity_gib: capacityGib = null } = body;
    const labels = requireFreeLabels(body.labels ?? {});
    await requireBelowCap(parts.database, call, capacityGib);
    await requireReachable(parts.volumeStore, call.signal);
    const volume = await call.commit(
      async (change) => {
        await checkVolumeQuota(change.db, call.organization, capacityGib);
        const organizationId = call.organization.id;
        const added = await addVolume(change.db, { organizationId, name, capacityGib, labels });
        await record(change, 'volume_created', added, { capacity_gib: capacityGib, labels });
        return added;
      },
      (added) => toVolumeView(added, null),
    );
    try {
      await ensureMade(parts, volume);
    } catch (error) {
      await abandon(parts, call, volume);
      throw error;
    }
    setVersion(call, volume);
    return toVolumeView(volume, null);
  };
}

/** A volume that could not be made is deleted like others, because the engine may have made it without answering. */
async function abandon(parts: VolumeParts, call: RestCall, volume: VolumeRecord): Promise<void> {
  await call.commit(async (change) => {
    await updateVolume(change.db, volume.id, { status: 'deleting' });
    await record(change, 'volume_deleted', volume, { reason: 'it could not be made' });
    await change.undo();
  });
  parts.volumeReconciler.wake();
}

function removeHandler(parts: VolumeParts): VolumeHandlers['volumes.remove'] {
  return async ({ params }, call) => {
    const answer = (volume: VolumeRecord) => ({
      message: `volume ${volume.name ?? volume.id} scheduled for deletion`,
    });
    const volume = await call.commit(async (change) => {
      const found = await requireVolume(change.db, call, params.id);
      if (found.kind === 'host') {
        throw new PlatformError('invalid_request', 'the host volume cannot be deleted', { isConflict: true });
      }
      if (found.status === 'deleting') return found;
      requireVersion(call, found);
      await requireUnused(change, found);
      await closeUsage(change.db, found.id, new Date().toISOString());
      await record(change, 'volume_deleted', found, {});
      return await updateVolume(change.db, found.id, { status: 'deleting' });
    }, answer);
    parts.volumeReconciler.wake();
    return answer(volume);
  };
}

async function requireUnused({ db }: Change, volume: VolumeRecord): Promise<void> {
  const users = await listUsers(db, volume.id);
  const [first] = users;
  if (first === undefined) return;
  const others = users.length === 1 ? '' : ` and ${users.length - 1} more`;
  throw new PlatformError(
    'volume_in_use',
    `sandbox '${first}'${others} has the volume mounted; delete it first`,
    {
      details: { sandboxes: users.slice(0, 10) },
    },
  );
}

/** Recorded at first need; made by the reconciler soon, or by its first use. */
async function hostVolume(parts: VolumeParts, call: RestCall): Promise<VolumeRecord> {
  const volume = await ensureHostVolume(parts.database, call.organization.id);
  if (!volume.isMade) parts.volumeReconciler.wake();
  return volume;
}

async function show(parts: VolumeParts, volume: VolumeRecord, call: RestCall) {
  setVersion(call, volume);
  const usedBytes = await measureVolumes(parts, [volume], call.signal);
  return toVolumeView(volume, usedBytes.get(volume.id) ?? null);
}

function setVersion(call: RestCall, { version }: VolumeRecord): void {
  call.setHeader('etag', `"${version}"`);
}

async function record(
  change: Change,
  type: Extract<EventType, `volume_${string}`>,
  { id, name }: VolumeRecord,
  payload: Readonly<Record<string, unknown>>,
): Promise<void> {
  await change.record({ type, category: 'volume', payload: { volume_id: id, name, ...payload } });
}
