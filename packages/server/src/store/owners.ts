import type { Database } from './database.ts';

/** What the engine keeps for somebody. */
export type OwnedKind = 'sandbox' | 'volume' | 'snapshot';

export interface Owner {
  /** Null: the nameless volume of an organization. */
  readonly name: string | null;
  /** The slug of the organization. */
  readonly namespace: string;
}

interface OwnedRow extends Owner {
  readonly id: string;
}

/** A query names this many ids at most. */
const IDS_AT_ONCE = 500;

const SELECT: Readonly<
  Record<OwnedKind, (db: Database, ids: readonly string[]) => Promise<readonly OwnedRow[]>>
> = { sandbox: selectSandboxes, volume: selectVolumes, snapshot: selectSnapshots };

/** Of these ids those that a row knows, also of what is removed or still to be made: that may be under way. */
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

/** A snapshot has its row when it is made; until then that of the operation knows its id. */
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
