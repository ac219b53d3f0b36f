import { PlatformError, RESERVED_LABEL_PREFIXES } from '@svc/contract';
import type { Database } from '../../store/database.ts';
import { readTerms } from '../../store/quotas.ts';
import { findVolume, type VolumeRecord } from '../../store/volumes.ts';
import { volumeNotFound } from '../../volumes/make-volume.ts';
import type { RestCall } from '../../dispatch/rest-call.ts';

/** @throws PlatformError `volume_not_found` */
export async function requireVolume(
  db: Database,
  { organization }: RestCall,
  id: string,
): Promise<VolumeRecord> {
  const volume = await findVolume(db, organization.id, id);
  if (volume === undefined) throw volumeNotFound(id);
  return volume;
}

/** @throws PlatformError `invalid_state_transition` */
export function requireActive(volume: VolumeRecord): VolumeRecord {
  if (volume.status === 'active') return volume;
  throw new PlatformError('invalid_state_transition', `volume ${volume.name ?? volume.id} is being deleted`, {
    details: { volume_id: volume.id, status: volume.status },
  });
}

/** @throws PlatformError `precondition_failed` */
export function requireVersion({ expectedVersion }: RestCall, { version }: VolumeRecord): void {
  if (expectedVersion === null || expectedVersion === version) return;
  const message = `the volume is at version ${version}, not ${expectedVersion}; read it again`;
  throw new PlatformError('precondition_failed', message, { details: { version } });
}

/** A cap above the limit for all volumes together is invalid, independent of free room. @throws PlatformError `invalid_request` */
export async function requireBelowCap(
  db: Database,
  { organization }: RestCall,
  capacityGib: number | null,
): Promise<void> {
  const maximum = (await readTerms(db, organization.id)).limits.max_total_storage_gib;
  if (capacityGib === null || maximum === null || capacityGib <= maximum) return;
  const reason = `must be at most ${maximum}, which is all the storage of the organization`;
  throw new PlatformError('invalid_request', `capacity_gib ${reason}`, {
    details: { field: 'capacity_gib', reason, maximum },
  });
}

/** @throws PlatformError `invalid_request` */
export function requireFreeLabels<L extends Readonly<Record<string, string>>>(labels: L): L {
  for (const key of Object.keys(labels)) {
    const prefix = RESERVED_LABEL_PREFIXES.find((reserved) => key.startsWith(reserved));
    if (prefix === undefined) continue;
    const field = `labels.${key}`;
    const reason = `has the reserved prefix ${prefix}; choose another key`;
    throw new PlatformError('invalid_request', `${field} ${reason}`, { details: { field, reason } });
  }
  return labels;
}
