import { randomUUID } from 'node:crypto';
import type { Selectable } from 'kysely';
import type { RegistryRow } from './credential-rows.ts';
import type { Database } from './database.ts';
import { prepareLookup } from './prepare-lookup.ts';
import { canonicalRegistryHost } from './registry-host.ts';

export interface RegistryRecord {
  readonly id: string;
  /** In canonical form. */
  readonly host: string;
  readonly username: string;
  /** Opens with `registryContext(id)`. */
  readonly sealedPassword: string;
  readonly createdAt: string;
  readonly updatedAt: string;
}

/** The sealing context of a registry password. */
export function registryContext(registryId: string): string {
  return `registry:${registryId}`;
}

/** Finds the registry by any of its host's names; undefined when the organization has no password for it. */
export async function findRegistryFor(
  db: Database,
  organizationId: string,
  host: string,
): Promise<RegistryRecord | undefined> {
  const row = await selectByHost(db, { organizationId, host: canonicalRegistryHost(host) });
  return row === undefined ? undefined : toRegistry(row);
}

const selectByHost = prepareLookup(['organizationId', 'host'], (db, { organizationId, host }) =>
  db
    .selectFrom('registries')
    .selectAll()
    .where('organization_id', '=', organizationId)
    .where('registry_host', '=', host),
);

export async function findRegistry(
  db: Database,
  organizationId: string,
  id: string,
): Promise<RegistryRecord | undefined> {
  const row = await db
    .selectFrom('registries')
    .selectAll()
    .where('organization_id', '=', organizationId)
    .where('id', '=', id)
    .executeTakeFirst();
  return row === undefined ? undefined : toRegistry(row);
}

export async function listRegistries(
  db: Database,
  organizationId: string,
): Promise<readonly RegistryRecord[]> {
  const rows = await db
    .selectFrom('registries')
    .selectAll()
    .where('organization_id', '=', organizationId)
    .orderBy('registry_host')
    .execute();
  return rows.map(toRegistry);
}

/** Adds the registry, or replaces its user name and password. `seal` receives the id that the password belongs to. */
export async function putRegistry(
  db: Database,
  organizationId: string,
  registry: { readonly host: string; readonly username: string; readonly seal: (id: string) => string },
): Promise<RegistryRecord> {
  const host = canonicalRegistryHost(registry.host);
  const existing = await findRegistryFor(db, organizationId, host);
  const now = new Date().toISOString();
  const id = existing?.id ?? randomUUID();
  const change = { username: registry.username, password: registry.seal(id), updated_at: now };
  const row = await db
    .insertInto('registries')
    .values({ ...change, id, organization_id: organizationId, registry_host: host, created_at: now })
    .onConflict((conflict) => conflict.column('id').doUpdateSet(change))
    .returningAll()
    .executeTakeFirstOrThrow();
  return toRegistry(row);
}

/** @returns the removed registry; undefined when there was none */
export async function removeRegistry(
  db: Database,
  organizationId: string,
  id: string,
): Promise<RegistryRecord | undefined> {
  const row = await db
    .deleteFrom('registries')
    .where('organization_id', '=', organizationId)
    .where('id', '=', id)
    .returningAll()
    .executeTakeFirst();
  return row === undefined ? undefined : toRegistry(row);
}

function toRegistry(row: Selectable<RegistryRow>): RegistryRecord {
  return {
    id: row.id,
    host: row.registry_host,
    username: row.username,
    sealedPassword: row.password,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
  };
}
