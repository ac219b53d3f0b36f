import { randomUUID } from 'node:crypto';
import type { SandboxSpec } from '@svc/contract';
import type { Selectable, SelectQueryBuilder } from 'kysely';
import type { PortMapping } from '../ports/port-mapping.ts';
import type { Database, OrganizationRow, SandboxRow, Tables } from './database.ts';
import { ensureOrganization } from './organizations.ts';

/** What callers want of a sandbox. */
export type DesiredState = 'running' | 'stopped' | 'removed';

/** What is known about it. `temporarily_unavailable`: it ran when the engine was last seen. */
export type ObservedState =
  | 'created'
  | 'starting'
  | 'running'
  | 'temporarily_unavailable'
  | 'stopping'
  | 'stopped'
  | 'failed';

export interface SandboxRecord {
  /** Also its id in the engine. */
  readonly id: string;
  readonly namespace: string;
  readonly name: string;
  readonly spec: SandboxSpec;
  readonly ports: readonly PortMapping[];
  readonly desired: DesiredState;
  readonly observed: ObservedState;
  /** Why the latest start or run went wrong; null when it did not. */
  readonly failureMessage: string | null;
  readonly createdAt: string;
  readonly startedAt: string | null;
  readonly endedAt: string | null;
  readonly removedAt: string | null;
}

export interface NewSandbox {
  readonly namespace: string;
  readonly name: string;
  readonly spec: SandboxSpec;
  readonly ports: readonly PortMapping[];
}

/** Adds a sandbox that is wanted running. One of the same name that was there before is to be removed. */
export async function replaceSandbox(db: Database, sandbox: NewSandbox): Promise<SandboxRecord> {
  const id = randomUUID();
  const now = new Date().toISOString();
  await db.transaction().execute(async (transaction) => {
    const organizationId = await ensureOrganization(transaction, sandbox.namespace);
    await transaction
      .updateTable('sandboxes')
      .set({ desired: 'removed', removed_at: now })
      .where('organization_id', '=', organizationId)
      .where('name', '=', sandbox.name)
      .where('removed_at', 'is', null)
      .execute();
    await transaction
      .insertInto('sandboxes')
      .values({
        id,
        organization_id: organizationId,
        name: sandbox.name,
        spec: JSON.stringify(sandbox.spec),
        ports: JSON.stringify(sandbox.ports),
        desired: 'running',
        observed: 'created',
        failure_message: null,
        created_at: now,
        started_at: null,
        ended_at: null,
        removed_at: null,
      })
      .execute();
  });
  return toRecord(await select(db).where('sandboxes.id', '=', id).executeTakeFirstOrThrow());
}

export interface SandboxChange {
  readonly desired?: DesiredState;
  readonly observed?: ObservedState;
  readonly failureMessage?: string | null;
  readonly startedAt?: string | null;
  readonly endedAt?: string | null;
}

export async function updateSandbox(db: Database, id: string, change: SandboxChange): Promise<void> {
  const { desired, observed, failureMessage, startedAt, endedAt } = change;
  await db
    .updateTable('sandboxes')
    .set({
      ...(desired === undefined ? {} : { desired }),
      ...(observed === undefined ? {} : { observed }),
      ...(failureMessage === undefined ? {} : { failure_message: failureMessage }),
      ...(startedAt === undefined ? {} : { started_at: startedAt }),
      ...(endedAt === undefined ? {} : { ended_at: endedAt }),
    })
    .where('id', '=', id)
    .execute();
}

/** Removed ones too. */
export async function getSandbox(db: Database, id: string): Promise<SandboxRecord | undefined> {
  const row = await select(db).where('sandboxes.id', '=', id).executeTakeFirst();
  return row === undefined ? undefined : toRecord(row);
}

/** The orchestrator went away: what ran may still run, but nobody can say. */
export async function markUnavailable(db: Database): Promise<void> {
  await db
    .updateTable('sandboxes')
    .set({ observed: 'temporarily_unavailable' })
    .where('observed', '=', 'running')
    .where('removed_at', 'is', null)
    .execute();
}

export async function findSandbox(
  db: Database,
  namespace: string,
  name: string,
): Promise<SandboxRecord | undefined> {
  const row = await select(db)
    .where('organizations.slug', '=', namespace)
    .where('sandboxes.name', '=', name)
    .where('sandboxes.removed_at', 'is', null)
    .executeTakeFirst();
  return row === undefined ? undefined : toRecord(row);
}

/** Those that are not removed, by namespace and name. A filter that is absent admits everything. */
export async function listSandboxes(
  db: Database,
  filter: { readonly namespace?: string; readonly name?: string } = {},
): Promise<readonly SandboxRecord[]> {
  let query = select(db).where('sandboxes.removed_at', 'is', null);
  if (filter.namespace !== undefined) query = query.where('organizations.slug', '=', filter.namespace);
  if (filter.name !== undefined) query = query.where('sandboxes.name', '=', filter.name);
  return (await query.orderBy('organizations.slug').orderBy('sandboxes.name').execute()).map(toRecord);
}

/** Which of these ids belong to sandboxes that were removed here, so that the engine must not keep them. */
export async function findRemoved(db: Database, ids: readonly string[]): Promise<readonly SandboxRecord[]> {
  if (ids.length === 0) return [];
  const rows = await select(db)
    .where('sandboxes.id', 'in', [...ids])
    .where('sandboxes.removed_at', 'is not', null)
    .execute();
  return rows.map(toRecord);
}

/** How many sandboxes are in each observed state. */
export async function countSandboxes(db: Database): Promise<ReadonlyMap<ObservedState, number>> {
  const rows = await db
    .selectFrom('sandboxes')
    .select((build) => ['observed', build.fn.countAll<number | string>().as('count')])
    .where('removed_at', 'is', null)
    .groupBy('observed')
    .execute();
  return new Map(rows.map(({ observed, count }) => [observed as ObservedState, Number(count)]));
}

type JoinedRow = Selectable<SandboxRow> & Pick<Selectable<OrganizationRow>, 'slug'>;

function select(db: Database): SelectQueryBuilder<Tables, 'sandboxes' | 'organizations', JoinedRow> {
  return db
    .selectFrom('sandboxes')
    .innerJoin('organizations', 'organizations.id', 'sandboxes.organization_id')
    .selectAll('sandboxes')
    .select('organizations.slug');
}

/** The columns hold what the functions above wrote, so their types are known. */
function toRecord(row: JoinedRow): SandboxRecord {
  return {
    id: row.id,
    namespace: row.slug,
    name: row.name,
    spec: JSON.parse(row.spec) as SandboxSpec,
    ports: JSON.parse(row.ports) as readonly PortMapping[],
    desired: row.desired as DesiredState,
    observed: row.observed as ObservedState,
    failureMessage: row.failure_message,
    createdAt: row.created_at,
    startedAt: row.started_at,
    endedAt: row.ended_at,
    removedAt: row.removed_at,
  };
}
