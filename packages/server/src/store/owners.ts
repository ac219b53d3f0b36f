import type { Database } from './database.ts';

/** A kind of object that the engine stores for an organization. */
export type OwnedKind = 'sandbox' | 'volume' | 'snapshot';

export interface Owner {
  /** Null: the nameless host volume of an organization. */
  readonly name: string | null;
  /** The slug of the organization. */
  readonly namespace: string;
}

interface OwnedRow extends Owner {
  readonly id: string;
}

/** Maximum number of ids per query. */
const IDS_AT_ONCE = 500;

const SELECT: Readonly<
  Record<OwnedKind, (db: Database, ids: readonly string[]) => Promise<readonly OwnedRow[]>>
> = { sandbox: selectSandboxes, volume: selectVolumes, snapshot: selectSnapshots };

/**
 * Finds the rows of these ids, including removed objects and objects still to be created, because either operation
 * may be in progress.
 */
export async function findOwners(
  db: Database,
  kind: OwnedKind,
  ids: readonly string[],
): Promise<ReadonlyMap<string, Owner>> {
  const owners = new Map<string, Owner>();
  for (let at = 0; at < ids.length; at += IDS_AT_ONCE) {
    for (const { id, name, namespace } of await SELECT[kind](db, ids.slice(at, at + IDS_AT_ONCE)))
      owners.set(id, { name, namespace });
  }
  return owners;
}

async function selectSandboxes(db: Database, ids: readonly string[]): Promise<readonly OwnedRow[]> {
  return await db
    .selectFrom('sandboxes')
    .innerJoin('organizations', 'organizations.id', 'sandboxes.organization_id')
    .select(['sandboxes.id', 'sandboxes.name', 'organizations.slug as namespace'])
    .where('sandboxes.id', 'in', [...ids])
    .execute();
}

async function selectVolumes(db: Database, ids: readonly string[]): Promise<readonly OwnedRow[]> {
  return await db
    .selectFrom('volumes')
    .innerJoin('organizations', 'organizations.id', 'volumes.organization_id')
    .select(['volumes.id', 'volumes.name', 'organizations.slug as namespace'])
    .where('volumes.id', 'in', [...ids])
    .execute();
}

/** A snapshot has a row once it is complete; until then, its id is in the row of its operation. */
async function selectSnapshots(db: Database, ids: readonly string[]): Promise<readonly OwnedRow[]> {
  const asked = await db
    .selectFrom('snapshot_operations')
    .innerJoin('organizations', 'organizations.id', 'snapshot_operations.organization_id')
    .select(['snapshot_id as id', 'snapshot_name as name', 'organizations.slug as namespace'])
    .where('snapshot_id', 'in', [...ids])
    .execute();
  const made = await db
    .selectFrom('snapshots')
    .innerJoin('organizations', 'organizations.id', 'snapshots.organization_id')
    .select(['snapshots.id', 'snapshots.name', 'organizations.slug as namespace'])
    .where('snapshots.id', 'in', [...ids])
    .execute();
  return [...asked, ...made];
}
