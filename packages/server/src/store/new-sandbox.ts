import { PlatformError, type SandboxSpec } from '@svc/contract';
import type { PortMapping } from './port-mapping.ts';
import type { Selectable } from 'kysely';
import type { Database, SandboxRow, SandboxVolumeRow } from './database.ts';
import { prepareLookup } from './prepare-lookup.ts';
import { prepareStatement, type StandIns } from './prepare-statement.ts';
import {
  getSandbox,
  updateSandbox,
  type EventCaller,
  type SandboxChange,
  type SandboxRecord,
} from './sandboxes.ts';
import { isSlugFree, makeSlug } from './slugs.ts';

const SLUG_ATTEMPTS = 20;
/** The remaining columns are empty at first. */
const NEW_COLUMNS = [
  'id',
  'organization_id',
  'name',
  'slug',
  'spec',
  'ports',
  'is_ephemeral',
  'isolation',
  'snapshot_id',
  'has_host_paths',
  'secrets',
  'desired',
  'observed',
  'status_reason',
  'state_since',
  'wish',
  'created_at',
  'updated_at',
] as const satisfies readonly (keyof SandboxRow)[];

export interface NewSandbox {
  readonly id: string;
  readonly organizationId: string;
  readonly name: string;
  /** Null: a slug is generated. */
  readonly slug: string | null;
  readonly spec: SandboxSpec;
  readonly ports: readonly PortMapping[];
  readonly isolation: string | null;
  readonly snapshotId: string | null;
  /** True: absolute host paths in its spec refer to the host itself; absent: to the organization's own folder on it. */
  readonly hasHostPaths?: boolean;
  /** Sealed. */
  readonly secrets: string | null;
  readonly volumes: readonly Omit<SandboxVolumeRow, 'sandbox_id'>[];
  readonly isWantedRunning: boolean;
  readonly requestedBy: EventCaller | null;
}

/** Adds a sandbox in the caller's transaction. @throws PlatformError `name_already_exists` for its name or its slug */
export async function insertSandbox(transaction: Database, sandbox: NewSandbox): Promise<SandboxRecord> {
  const { id, organizationId, name, spec } = sandbox;
  const now = new Date().toISOString();
  for (let attempt = 0; ; attempt += 1) {
    const slug = sandbox.slug ?? makeSlug();
    if (await insertRow(transaction, sandbox, slug, now)) break;
    if (await isNameTaken(transaction, organizationId, name)) throw nameTaken('name', name);
    if (sandbox.slug !== null) throw nameTaken('slug', slug);
    if (attempt > SLUG_ATTEMPTS) throw new Error(`no free slug was found in ${SLUG_ATTEMPTS} attempts`);
  }
  await addLabels(transaction, { id, organizationId, createdAt: now }, spec.labels ?? {});
  await addPatches(transaction, id, spec);
  const volumes = sandbox.volumes.map((volume) => ({ sandbox_id: id, ...volume }));
  if (volumes.length > 0) await transaction.insertInto('sandbox_volumes').values(volumes).execute();
  const record = await getSandbox(transaction, id);
  if (record === undefined) throw new Error(`sandbox ${id} is gone right after it was written`);
  return record;
}

/** Stored separately from the spec, because patches may be large and only the engine reads them. */
async function addPatches(
  transaction: Database,
  sandboxId: string,
  { patches = [] }: SandboxSpec,
): Promise<void> {
  if (patches.length === 0) return;
  const row = { sandbox_id: sandboxId, patches: JSON.stringify(patches) };
  await transaction.insertInto('sandbox_patches').values(row).execute();
}

/** The files to write to the disk of a sandbox before its first run. */
export async function readPatches(
  db: Database,
  { id, spec }: Pick<SandboxRecord, 'id' | 'spec'>,
): Promise<Pick<SandboxSpec, 'patches'>> {
  const row = await selectPatches(db, { id });
  // Written by `addPatches`; sandboxes of earlier versions have their patches in the spec.
  if (row !== undefined) return { patches: JSON.parse(row.patches) as NonNullable<SandboxSpec['patches']> };
  return spec.patches === undefined ? {} : { patches: spec.patches };
}

const selectPatches = prepareLookup(['id'], (db, { id }) =>
  db.selectFrom('sandbox_patches').select('patches').where('sandbox_id', '=', id),
);

/** Adds labels; existing ones are kept. */
export async function addLabels(
  transaction: Database,
  sandbox: Pick<SandboxRecord, 'id' | 'organizationId' | 'createdAt'>,
  labels: Readonly<Record<string, string>>,
): Promise<void> {
  const rows = Object.entries(labels).map(([key, value]) => ({
    sandbox_id: sandbox.id,
    organization_id: sandbox.organizationId,
    key,
    value,
    created_at: sandbox.createdAt,
  }));
  if (rows.length === 0) return;
  await transaction
    .insertInto('sandbox_labels')
    .values(rows)
    .onConflict((conflict) => conflict.doNothing())
    .execute();
}

/**
 * Removes the sandbox from every list in the caller's transaction; its name and slug can be used again, and its
 * secrets are deleted.
 */
export async function removeSandbox(
  transaction: Database,
  record: SandboxRecord,
  requestedBy: EventCaller | null,
): Promise<SandboxRecord> {
  const now = new Date().toISOString();
  for (const remove of DELETIONS) await remove(transaction, { id: record.id });
  return await updateSandbox(transaction, record, {
    desired: 'removed',
    removedAt: now,
    secrets: null,
    requestedBy,
  });
}

const DELETIONS = (['sandbox_labels', 'sandbox_volumes', 'sandbox_patches'] as const).map((table) =>
  prepareStatement(['id'], (db, { id }: StandIns<{ id: string }>) =>
    db.deleteFrom(table).where('sandbox_id', '=', id),
  ),
);

/** @throws PlatformError `name_already_exists` */
export async function renameSandbox(
  transaction: Database,
  record: SandboxRecord,
  change: Pick<SandboxChange, 'name' | 'slug'>,
): Promise<SandboxRecord> {
  const { name, slug } = change;
  if (name !== undefined && name !== record.name) {
    if (await isNameTaken(transaction, record.organizationId, name)) throw nameTaken('name', name);
  }
  if (slug !== undefined && slug !== record.slug) {
    if (!(await isSlugFree(transaction, slug))) throw nameTaken('slug', slug);
  }
  return await updateSandbox(transaction, record, change);
}

export function nameTaken(field: 'name' | 'slug', value: string): PlatformError {
  const message = `There is a sandbox with the ${field} '${value}' already; choose another one`;
  return new PlatformError('name_already_exists', message, { details: { field, [field]: value } });
}

/** @returns false when its name or its slug is taken. */
async function insertRow(
  transaction: Database,
  sandbox: NewSandbox,
  slug: string,
  now: string,
): Promise<boolean> {
  const { id, organizationId, name, spec, ports, isWantedRunning } = sandbox;
  const { rows } = await insertNew(transaction, {
    id,
    organization_id: organizationId,
    name,
    slug,
    spec: JSON.stringify({ ...spec, patches: undefined }),
    ports: JSON.stringify(ports),
    is_ephemeral: spec.lifecycle?.ephemeral === true ? 1 : 0,
    isolation: sandbox.isolation,
    snapshot_id: sandbox.snapshotId,
    has_host_paths: sandbox.hasHostPaths === true ? 1 : 0,
    secrets: sandbox.secrets,
    desired: isWantedRunning ? 'running' : 'stopped',
    observed: isWantedRunning ? 'starting' : 'created',
    status_reason: isWantedRunning ? 'scheduling' : null,
    state_since: now,
    wish: sandbox.requestedBy === null ? null : JSON.stringify(sandbox.requestedBy),
    created_at: now,
    updated_at: now,
  });
  return rows.length > 0;
}

type NewRow = Pick<Selectable<SandboxRow>, (typeof NEW_COLUMNS)[number]>;

const insertNew = prepareStatement<NewRow, { id: string }>(NEW_COLUMNS, (db, row) =>
  db
    .insertInto('sandboxes')
    .values({ ...row, failure_message: null, started_at: null, ended_at: null, removed_at: null })
    .onConflict((conflict) => conflict.doNothing())
    .returning('id'),
);

async function isNameTaken(db: Database, organizationId: string, name: string): Promise<boolean> {
  const row = await db
    .selectFrom('sandboxes')
    .select('id')
    .where('organization_id', '=', organizationId)
    .where('name', '=', name)
    .where('removed_at', 'is', null)
    .executeTakeFirst();
  return row !== undefined;
}
