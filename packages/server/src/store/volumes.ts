import { randomUUID } from 'node:crypto';
import { PlatformError } from '@svc/contract';
import { sql, type Selectable } from 'kysely';
import type { Database, VolumeRow } from './database.ts';
import { slugOf } from './organizations.ts';
import { openUsage } from './volume-usage.ts';

export interface VolumeRecord {
  /** Also its id in the engine. */
  readonly id: string;
  readonly organizationId: string;
  /** Every organization has one of kind `host`, which has no name. */
  readonly kind: 'host' | 'managed';
  readonly name: string | null;
  /** Null: no limit of its own. */
  readonly capacityGib: number | null;
  readonly labels: Readonly<Record<string, string>>;
  readonly status: 'active' | 'deleting';
  readonly version: number;
  /** Whether the engine has created it: see `ensureMade`. */
  readonly isMade: boolean;
  readonly createdAt: string;
  readonly updatedAt: string;
}

export interface NewVolume {
  readonly organizationId: string;
  readonly name: string;
  readonly capacityGib: number | null;
  readonly labels: Readonly<Record<string, string>>;
}

/** @throws PlatformError `name_already_exists`, also while a volume of this name is being deleted */
export async function addVolume(db: Database, volume: NewVolume): Promise<VolumeRecord> {
  const row = newRow(volume.organizationId, { ...volume, kind: 'managed' });
  const { numInsertedOrUpdatedRows } = await db
    .insertInto('volumes')
    .values(row)
    .onConflict((conflict) => conflict.doNothing())
    .executeTakeFirst();
  if (numInsertedOrUpdatedRows !== 1n) {
    throw new PlatformError(
      'name_already_exists',
      `there is a volume '${volume.name}'; choose another name`,
      {
        details: { field: 'name', name: volume.name },
      },
    );
  }
  await openUsage(db, row, row.created_at);
  return toVolume(row);
}

/** The nameless volume of the organization, which is created when missing. */
export async function ensureHostVolume(db: Database, organizationId: string): Promise<VolumeRecord> {
  const found = await findHostVolume(db, organizationId);
  if (found !== undefined) return found;
  const row = newRow(organizationId, { kind: 'host', name: null, capacityGib: null, labels: {} });
  const { numInsertedOrUpdatedRows } = await db
    .insertInto('volumes')
    .values(row)
    // Another caller may have inserted it meanwhile.
    .onConflict((conflict) => conflict.doNothing())
    .executeTakeFirst();
  if (numInsertedOrUpdatedRows === 1n) await openUsage(db, row, row.created_at);
  const host = await findHostVolume(db, organizationId);
  if (host === undefined) throw new Error('a host volume that was just added is missing');
  return host;
}

/** Undefined when it does not exist or belongs to another organization. */
export async function findVolume(
  db: Database,
  organizationId: string,
  id: string,
): Promise<VolumeRecord | undefined> {
  const row = await existing(db)
    .where('organization_id', '=', organizationId)
    .where('id', '=', id.toLowerCase())
    .executeTakeFirst();
  return row === undefined ? undefined : toVolume(row);
}

/** The slug of the organization of a volume; undefined when the volume does not exist. */
export async function findSlugOfVolume(db: Database, id: string): Promise<string | undefined> {
  const row = await existing(db).where('id', '=', id).executeTakeFirst();
  return row === undefined ? undefined : await slugOf(db, row.organization_id);
}

/** Finds a volume to use; one that is being deleted is not found. */
export async function findVolumeByName(
  db: Database,
  organizationId: string,
  name: string,
): Promise<VolumeRecord | undefined> {
  const row = await existing(db)
    .where('organization_id', '=', organizationId)
    .where('name', '=', name)
    .where('status', '=', 'active')
    .executeTakeFirst();
  return row === undefined ? undefined : toVolume(row);
}

/** Volumes of the organization, oldest first. */
export async function listVolumes(db: Database, organizationId: string): Promise<readonly VolumeRecord[]> {
  const rows = await existing(db)
    .where('organization_id', '=', organizationId)
    .orderBy('created_at')
    .orderBy('id')
    .execute();
  return rows.map(toVolume);
}

/** Volumes of all organizations: to create, to remove, and existing in the engine. */
export async function listVolumesByWork(
  db: Database,
  work: 'to make' | 'to remove' | 'kept',
): Promise<readonly VolumeRecord[]> {
  const status = work === 'to remove' ? 'deleting' : 'active';
  const query = existing(db).where('status', '=', status).orderBy('created_at').orderBy('id');
  const rows = await (
    work === 'to remove' ? query : query.where('is_made', '=', work === 'kept' ? 1 : 0)
  ).execute();
  return rows.map(toVolume);
}

export interface VolumeChange {
  readonly capacityGib?: number | null;
  readonly labels?: Readonly<Record<string, string>>;
  readonly status?: 'deleting';
}

/** Applies a change and increases the version. */
export async function updateVolume(db: Database, id: string, change: VolumeChange): Promise<VolumeRecord> {
  const { capacityGib, labels, status } = change;
  const row = await db
    .updateTable('volumes')
    .set({
      ...(capacityGib === undefined ? {} : { capacity_gib: capacityGib }),
      ...(labels === undefined ? {} : { labels: JSON.stringify(labels) }),
      ...(status === undefined ? {} : { status }),
      version: sql<number>`version + 1`,
      updated_at: new Date().toISOString(),
    })
    .where('id', '=', id)
    .returningAll()
    .executeTakeFirstOrThrow();
  return toVolume(row);
}

/** Records that the engine has created the volume. @returns false when it is to be deleted meanwhile */
export async function markMade(db: Database, id: string): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable('volumes')
    .set({ is_made: 1 })
    .where('id', '=', id)
    .where('status', '=', 'active')
    .executeTakeFirst();
  return numUpdatedRows === 1n;
}

/** Records that the engine has deleted the volume: its name can be used again, and its usage stays. */
export async function markGone(db: Database, id: string): Promise<void> {
  await db
    .updateTable('volumes')
    .set({ removed_at: new Date().toISOString(), status: 'deleting' })
    .where('id', '=', id)
    .where('removed_at', 'is', null)
    .execute();
}

/** The names of sandboxes that mount the volume, running or not. */
export async function listUsers(db: Database, volumeId: string): Promise<readonly string[]> {
  const rows = await db
    .selectFrom('sandbox_volumes')
    .innerJoin('sandboxes', 'sandboxes.id', 'sandbox_volumes.sandbox_id')
    .select('sandboxes.name')
    .distinct()
    .where('sandbox_volumes.volume_id', '=', volumeId)
    .where('sandboxes.removed_at', 'is', null)
    .orderBy('sandboxes.name')
    .execute();
  return rows.map(({ name }) => name);
}

/** The mounts of a sandbox, by path. */
export async function listMounts(
  db: Database,
  sandboxId: string,
): Promise<
  readonly {
    readonly volumeId: string;
    /** Null: the host volume of the organization. */
    readonly name: string | null;
    readonly mountPath: string;
    readonly isReadOnly: boolean;
  }[]
> {
  const rows = await db
    .selectFrom('sandbox_volumes')
    .innerJoin('volumes', 'volumes.id', 'sandbox_volumes.volume_id')
    .select(['volumes.id', 'volumes.name', 'sandbox_volumes.mount_path', 'sandbox_volumes.is_read_only'])
    .where('sandbox_volumes.sandbox_id', '=', sandboxId)
    .orderBy('sandbox_volumes.mount_path')
    .execute();
  return rows.map(({ id, name, mount_path, is_read_only }) => ({
    volumeId: id,
    name,
    mountPath: mount_path,
    isReadOnly: is_read_only !== 0,
  }));
}

async function findHostVolume(db: Database, organizationId: string): Promise<VolumeRecord | undefined> {
  const row = await existing(db)
    .where('organization_id', '=', organizationId)
    .where('kind', '=', 'host')
    .executeTakeFirst();
  return row === undefined ? undefined : toVolume(row);
}

function existing(db: Database) {
  return db.selectFrom('volumes').selectAll().where('removed_at', 'is', null);
}

function newRow(
  organizationId: string,
  { kind, name, capacityGib, labels }: Pick<VolumeRecord, 'kind' | 'name' | 'capacityGib' | 'labels'>,
): Selectable<VolumeRow> {
  const now = new Date().toISOString();
  return {
    id: randomUUID(),
    organization_id: organizationId,
    kind,
    name,
    capacity_gib: capacityGib,
    labels: JSON.stringify(labels),
    status: 'active',
    version: 1,
    is_made: 0,
    created_at: now,
    updated_at: now,
    removed_at: null,
  };
}

function toVolume(row: Selectable<VolumeRow>): VolumeRecord {
  return {
    id: row.id,
    organizationId: row.organization_id,
    // The casts hold: the values are written from the same closed lists.
    kind: row.kind as VolumeRecord['kind'],
    name: row.name,
    capacityGib: row.capacity_gib,
    labels: JSON.parse(row.labels) as Readonly<Record<string, string>>,
    status: row.status as VolumeRecord['status'],
    version: row.version,
    isMade: row.is_made !== 0,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
  };
}
