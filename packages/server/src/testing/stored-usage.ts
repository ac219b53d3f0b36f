import { randomUUID } from 'node:crypto';
import type { Database } from '../store/database.ts';

export async function addRun(
  db: Database,
  run: {
    readonly sandboxId: string;
    readonly organizationId: string;
    readonly started: string;
    readonly ended: string | null;
    readonly vcpus?: number;
    readonly memory?: number;
    readonly disk?: number;
  },
): Promise<void> {
  const { sandboxId, organizationId, started, ended, vcpus = 1, memory = 1, disk = 1 } = run;
  await db
    .insertInto('runs')
    .values({
      id: randomUUID(),
      sandbox_id: sandboxId,
      organization_id: organizationId,
      vcpus,
      memory_mib: memory,
      disk_mib: disk,
      started_at: started,
      ended_at: ended,
      end_reason: null,
    })
    .execute();
}

export async function addVolume(
  db: Database,
  organizationId: string,
  capacityGib: number | null,
): Promise<string> {
  const id = randomUUID();
  const now = '2026-01-01T00:00:00.000Z';
  await db
    .insertInto('volumes')
    .values({
      id,
      organization_id: organizationId,
      kind: 'managed',
      name: id,
      capacity_gib: capacityGib,
      labels: '{}',
      status: 'active',
      created_at: now,
      updated_at: now,
      removed_at: null,
    })
    .execute();
  return id;
}

export async function addStretch(
  db: Database,
  volume: { readonly volumeId: string; readonly organizationId: string; readonly bytes: number },
  started: string,
  ended: string,
): Promise<void> {
  await db
    .insertInto('volume_usage')
    .values({
      volume_id: volume.volumeId,
      organization_id: volume.organizationId,
      started_at: started,
      ended_at: ended,
      used_bytes: volume.bytes,
    })
    .execute();
}

export async function addSnapshot(
  db: Database,
  organizationId: string,
  bytes: number,
  created: string,
  removed: string | null,
): Promise<void> {
  const id = randomUUID();
  await db
    .insertInto('snapshots')
    .values({
      id,
      organization_id: organizationId,
      name: id,
      sandbox_id: id,
      sandbox_name: 'a',
      digest: 'sha256:0',
      size_bytes: bytes,
      manifest: '{}',
      labels: '{}',
      created_at: created,
      removed_at: removed,
    })
    .execute();
}
