import type { SandboxSpec } from '@svc/contract';
import type { ResolvedSpec } from '@svc/contract/orchestrator';
import { sql, type Expression, type Selectable, type SelectQueryBuilder } from 'kysely';
import type { PortMapping } from './port-mapping.ts';
import type { Database, SandboxRow, Tables } from './database.ts';
import type { Actor } from './events.ts';
import { prepareLookup } from './prepare-lookup.ts';
import { prepareStatement } from './prepare-statement.ts';
import { requireMove, type DesiredState, type ObservedState } from './sandbox-moves.ts';

/** The actor of a request, recorded in its event. */
export interface EventCaller {
  readonly actor: Actor;
  readonly requestId: string | null;
  readonly sourceAddress: string | null;
}

export interface SandboxRecord {
  /** Also its id in the engine. */
  readonly id: string;
  readonly organizationId: string;
  /** The slug of the organization. */
  readonly namespace: string;
  readonly name: string;
  readonly slug: string;
  /** Increases with every change that is visible to callers. */
  readonly version: number;
  /** Without the values of secrets. */
  readonly spec: SandboxSpec;
  readonly ports: readonly PortMapping[];
  readonly isEphemeral: boolean;
  /** As requested, or as resolved; null: not known yet. */
  readonly isolation: string | null;
  /** The node that it is placed on; null: not placed yet, or there is only one. */
  readonly node: string | null;
  readonly snapshotId: string | null;
  /** True: requested by the owner of the host. */
  readonly hasHostPaths: boolean;
  /** The spec as resolved against image and host; null until it was first created. */
  readonly resolved: ResolvedSpec | null;
  /** Sealed; see sandboxes/sandbox-secrets.ts. */
  readonly secrets: string | null;
  /** Id of the latest change of its secrets, until the engine has received it; null: it has. */
  readonly valuesDue: string | null;
  /** The latest scheduled end of its run that was announced. */
  readonly announcedEnd: string | null;
  readonly desired: DesiredState;
  readonly observed: ObservedState;
  readonly statusReason: StatusReason | null;
  /** Error code of the latest start or run; null when it did not fail. */
  readonly failureCode: string | null;
  readonly failureMessage: string | null;
  readonly unavailableSince: string | null;
  readonly recoveryEndsAt: string | null;
  /** When `observed` last changed. */
  readonly stateSince: string;
  /** The actor of the desired state; null: the service itself. */
  readonly requestedBy: EventCaller | null;
  readonly createdAt: string;
  readonly startedAt: string | null;
  readonly endedAt: string | null;
  readonly removedAt: string | null;
}

export type StatusReason = 'scheduling' | 'insufficient_capacity';

export interface SandboxChange {
  readonly spec?: SandboxSpec;
  readonly name?: string;
  readonly slug?: string;
  readonly isolation?: string | null;
  readonly node?: string | null;
  readonly resolved?: ResolvedSpec;
  readonly secrets?: string | null;
  readonly desired?: DesiredState;
  readonly observed?: ObservedState;
  readonly statusReason?: StatusReason | null;
  readonly failureCode?: string | null;
  readonly failureMessage?: string | null;
  readonly unavailableSince?: string | null;
  readonly recoveryEndsAt?: string | null;
  readonly requestedBy?: EventCaller | null;
  readonly startedAt?: string | null;
  readonly endedAt?: string | null;
  readonly removedAt?: string | null;
}

/** Writes the fields that differ from the record; without a difference the version stays. */
export async function updateSandbox(
  db: Database,
  record: SandboxRecord,
  change: SandboxChange,
): Promise<SandboxRecord> {
  const changed = Object.fromEntries(
    Object.entries(change).filter(
      ([name, value]) => !isSame(record[name as keyof SandboxChange], value as unknown),
    ),
  ) as SandboxChange;
  if (Object.keys(changed).length === 0) return record;
  if (changed.observed !== undefined) requireMove(record.observed, changed.observed);
  const now = new Date().toISOString();
  const stateSince = changed.observed === undefined ? {} : { stateSince: now };
  const columns = { ...toColumns({ ...changed, ...stateSince }), updated_at: now };
  await updateOf(Object.keys(columns))(db, { ...columns, id: record.id });
  return { ...record, ...changed, ...stateSince, version: record.version + 1 };
}

/** Returns the statement for a set of columns. A few dozen sets occur; each statement is compiled once. */
function updateOf(columns: readonly string[]): Update {
  const name = columns.join();
  let update = updates.get(name);
  if (update === undefined) updates.set(name, (update = prepareUpdate(columns)));
  return update;
}

type Update = ReturnType<typeof prepareUpdate>;

const updates = new Map<string, Update>();

function prepareUpdate(columns: readonly string[]) {
  return prepareStatement<Record<string, string | null>>(['id', ...columns], (db, { id, ...values }) =>
    db
      .updateTable('sandboxes')
      .set({ ...values, version: sql<number>`version + 1` })
      .where('id', '=', id as Expression<string>),
  );
}

/** Gets a sandbox; removed ones too. */
export async function getSandbox(db: Database, id: string): Promise<SandboxRecord | undefined> {
  const row = await selectById(db, { id });
  return row === undefined ? undefined : toRecord(row);
}

const selectById = prepareLookup(['id'], (db, { id }) => selectSandboxes(db).where('sandboxes.id', '=', id));

export async function findSandbox(
  db: Database,
  namespace: string,
  name: string,
): Promise<SandboxRecord | undefined> {
  const row = await selectByName(db, { namespace, name });
  return row === undefined ? undefined : toRecord(row);
}

const selectByName = prepareLookup(['namespace', 'name'], (db, { namespace, name }) =>
  selectSandboxes(db)
    .where('organizations.slug', '=', namespace)
    .where('sandboxes.name', '=', name)
    .where('sandboxes.removed_at', 'is', null),
);

/** Finds a sandbox by id or name within one organization. */
export async function findOwnSandbox(
  db: Database,
  organizationId: string,
  reference: SandboxReference,
): Promise<SandboxRecord | undefined> {
  const row = await ('id' in reference
    ? selectOwnById(db, { organizationId, id: reference.id.toLowerCase() })
    : selectOwnByName(db, { organizationId, name: reference.name }));
  return row === undefined ? undefined : toRecord(row);
}

const selectOwnById = prepareLookup(['organizationId', 'id'], (db, { organizationId, id }) =>
  selectSandboxes(db)
    .where('sandboxes.organization_id', '=', organizationId)
    .where('sandboxes.removed_at', 'is', null)
    .where('sandboxes.id', '=', id),
);
const selectOwnByName = prepareLookup(['organizationId', 'name'], (db, { organizationId, name }) =>
  selectSandboxes(db)
    .where('sandboxes.organization_id', '=', organizationId)
    .where('sandboxes.removed_at', 'is', null)
    .where('sandboxes.name', '=', name),
);

export type SandboxReference = { readonly id: string } | { readonly name: string };

/** Sandboxes that are not removed, by namespace and name. An absent filter matches everything. */
export async function listSandboxes(
  db: Database,
  filter: { readonly organizationId?: string; readonly namespace?: string; readonly name?: string } = {},
): Promise<readonly SandboxRecord[]> {
  let query = selectSandboxes(db).where('sandboxes.removed_at', 'is', null);
  if (filter.organizationId !== undefined) {
    query = query.where('sandboxes.organization_id', '=', filter.organizationId);
  }
  if (filter.namespace !== undefined) query = query.where('organizations.slug', '=', filter.namespace);
  if (filter.name !== undefined) query = query.where('sandboxes.name', '=', filter.name);
  return (await query.orderBy('organizations.slug').orderBy('sandboxes.name').execute()).map(toRecord);
}

/** The sandboxes among these ids, including removed ones. */
export async function findSandboxes(db: Database, ids: readonly string[]): Promise<readonly SandboxRecord[]> {
  if (ids.length === 0) return [];
  const rows = await selectSandboxes(db)
    .where('sandboxes.id', 'in', [...ids])
    .execute();
  return rows.map(toRecord);
}

/** Sandboxes in one of these states that are not removed. */
export async function listSandboxesIn(
  db: Database,
  states: readonly ObservedState[],
): Promise<readonly SandboxRecord[]> {
  const rows = await selectSandboxes(db)
    .where('sandboxes.observed', 'in', [...states])
    .where('sandboxes.removed_at', 'is', null)
    .execute();
  return rows.map(toRecord);
}

/** Number of sandboxes by observed state. */
export async function countSandboxes(db: Database): Promise<ReadonlyMap<ObservedState, number>> {
  const rows = await db
    .selectFrom('sandboxes')
    .select((build) => ['observed', build.fn.countAll<number | string>().as('count')])
    .where('removed_at', 'is', null)
    .groupBy('observed')
    .execute();
  return new Map(rows.map(({ observed, count }) => [observed as ObservedState, Number(count)]));
}

export type SandboxSelection = Selectable<SandboxRow> & { readonly namespace: string };

/** Number of sandboxes that are not removed; organizations without any are absent. */
export async function countSandboxesByOrganization(db: Database): Promise<ReadonlyMap<string, number>> {
  const rows = await db
    .selectFrom('sandboxes')
    .select((build) => ['organization_id as id', build.fn.countAll<number | string>().as('count')])
    .where('removed_at', 'is', null)
    .groupBy('organization_id')
    .execute();
  return new Map(rows.map(({ id, count }) => [id, Number(count)]));
}

/** Does not change the version, because callers cannot see it. */
export async function noteAnnouncedEnd(db: Database, id: string, at: string): Promise<void> {
  await db.updateTable('sandboxes').set({ announced_end: at }).where('id', '=', id).execute();
}

export function selectSandboxes(
  db: Database,
): SelectQueryBuilder<Tables, 'sandboxes' | 'organizations', SandboxSelection> {
  return db
    .selectFrom('sandboxes')
    .innerJoin('organizations', 'organizations.id', 'sandboxes.organization_id')
    .selectAll('sandboxes')
    .select('organizations.slug as namespace');
}

/** The casts hold because only the functions of this folder write these columns. */
export function toRecord(row: SandboxSelection): SandboxRecord {
  return {
    id: row.id,
    organizationId: row.organization_id,
    namespace: row.namespace,
    name: row.name,
    slug: row.slug,
    version: row.version,
    spec: JSON.parse(row.spec) as SandboxSpec,
    ports: JSON.parse(row.ports) as readonly PortMapping[],
    isEphemeral: row.is_ephemeral !== 0,
    isolation: row.isolation,
    node: row.node,
    snapshotId: row.snapshot_id,
    hasHostPaths: row.has_host_paths !== 0,
    resolved: row.resolved === null ? null : (JSON.parse(row.resolved) as ResolvedSpec),
    secrets: row.secrets,
    valuesDue: row.values_due,
    announcedEnd: row.announced_end,
    desired: row.desired as DesiredState,
    observed: row.observed as ObservedState,
    statusReason: row.status_reason as StatusReason | null,
    failureCode: row.failure_code,
    failureMessage: row.failure_message,
    unavailableSince: row.unavailable_since,
    recoveryEndsAt: row.recovery_ends_at,
    stateSince: row.state_since ?? row.created_at,
    requestedBy: row.wish === null ? null : (JSON.parse(row.wish) as EventCaller),
    createdAt: row.created_at,
    startedAt: row.started_at,
    endedAt: row.ended_at,
    removedAt: row.removed_at,
  };
}

const COLUMNS = {
  spec: 'spec',
  name: 'name',
  slug: 'slug',
  isolation: 'isolation',
  node: 'node',
  resolved: 'resolved',
  secrets: 'secrets',
  desired: 'desired',
  observed: 'observed',
  statusReason: 'status_reason',
  failureCode: 'failure_code',
  failureMessage: 'failure_message',
  unavailableSince: 'unavailable_since',
  recoveryEndsAt: 'recovery_ends_at',
  stateSince: 'state_since',
  requestedBy: 'wish',
  startedAt: 'started_at',
  endedAt: 'ended_at',
  removedAt: 'removed_at',
} as const satisfies Record<keyof SandboxChange | 'stateSince', keyof SandboxRow>;

function toColumns(change: SandboxChange & { readonly stateSince?: string }): Record<string, string | null> {
  return Object.fromEntries(
    Object.entries(change).map(([name, value]: [string, string | null | EventCaller]) => [
      COLUMNS[name as keyof typeof COLUMNS],
      value === null || typeof value === 'string' ? value : JSON.stringify(value),
    ]),
  );
}

function isSame(before: unknown, after: unknown): boolean {
  return before === after || JSON.stringify(before) === JSON.stringify(after);
}
