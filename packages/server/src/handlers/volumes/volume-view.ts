import type { Volume } from '@svc/contract/rest';
import type { VolumeRecord } from '../../store/volumes.ts';

const GIB = 1024 ** 3;

export function toVolumeView(volume: VolumeRecord, usedBytes: number | null): Volume {
  const { id, name, kind, status, capacityGib, labels, createdAt, updatedAt } = volume;
  return {
    id,
    name,
    kind,
    storage: 'block',
    status,
    capacity_bytes: capacityGib === null ? null : capacityGib * GIB,
    used_bytes: usedBytes,
    labels: { ...labels },
    created_at: createdAt,
    updated_at: updatedAt,
  };
}
