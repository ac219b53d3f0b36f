import { randomUUID } from 'node:crypto';
import type { NamedHost, SandboxSpec, SecretSource } from '@svc/contract';
import type { Selectable } from 'kysely';
import type { Database } from './database.ts';
import type { SecretRow } from './credential-rows.ts';
import { listSandboxes, type SandboxRecord } from './sandboxes.ts';

/** A secret of an organization. Opens with `secretContext(id)`. */
export interface SecretRecord {
  readonly id: string;
  readonly name: string;
  readonly sealedValue: string;
  /** The hosts that may receive the value, independent of the spec of a sandbox. */
  readonly allowedHosts: readonly NamedHost[];
  /** Authorities (PEM) that a sandbox which uses the secret may trust. */
  readonly authorities: readonly string[];
  readonly createdAt: string;
  readonly updatedAt: string;
}

/** The sealing context of a secret. */
export function secretContext(secretId: string): string {
  return `secret:${secretId}`;
}

/**
 * The name of a source in the store. Sources that name a variable of the caller's machine are looked up in the store
 * too, because the server has no access to that machine.
 */
export function nameInStore(source: SecretSource): string {
  return source.type === 'env' ? source.var : source.reference;
}

/** The names in the store that a spec refers to. */
export function storedNamesOf({ network }: SandboxSpec): readonly string[] {
  return (network?.secrets?.entries ?? []).flatMap(({ source }) =>
    source === undefined || source === null ? [] : [nameInStore(source)],
  );
}

/** Secrets sorted by name. */
export async function listSecrets(db: Database, organizationId: string): Promise<readonly SecretRecord[]> {
  const rows = await db
    .selectFrom('secrets')
    .selectAll()
    .where('organization_id', '=', organizationId)
    .orderBy('name')
    .execute();
  return rows.map(toSecret);
}

export interface NewSecret extends Pick<SecretRecord, 'name' | 'allowedHosts' | 'authorities'> {
  /** Receives the id that the value belongs to. */
  readonly seal: (id: string) => string;
}

/** Adds the secret, or replaces it. */
export async function putSecret(
  db: Database,
  organizationId: string,
  { name, allowedHosts, authorities, seal }: NewSecret,
): Promise<SecretRecord> {
  const existing = (await listSecrets(db, organizationId)).find((secret) => secret.name === name);
  const now = new Date().toISOString();
  const id = existing?.id ?? randomUUID();
  const change = {
    value: seal(id),
    allowed_hosts: JSON.stringify(allowedHosts),
    upstream_ca_cert: JSON.stringify(authorities),
    updated_at: now,
  };
  const row = await db
    .insertInto('secrets')
    .values({ ...change, id, organization_id: organizationId, name, created_at: now })
    .onConflict((conflict) => conflict.column('id').doUpdateSet(change))
    .returningAll()
    .executeTakeFirstOrThrow();
  return toSecret(row);
}

/** @returns false when it was not there */
export async function removeSecret(db: Database, organizationId: string, name: string): Promise<boolean> {
  const row = await db
    .deleteFrom('secrets')
    .where('organization_id', '=', organizationId)
    .where('name', '=', name)
    .returning('id')
    .executeTakeFirst();
  return row !== undefined;
}

/** Sandboxes of the organization that refer to the secret. */
export async function listUsersOfSecret(
  db: Database,
  organizationId: string,
  name: string,
): Promise<readonly SandboxRecord[]> {
  const all = await listSandboxes(db, { organizationId });
  return all.filter(({ spec }) => storedNamesOf(spec).includes(name));
}

/**
 * Marks sandboxes whose values the engine has not received yet. Call it in the transaction that changes the values,
 * so that a crash loses nothing.
 */
export async function markValuesPending(db: Database, sandboxIds: readonly string[]): Promise<void> {
  for (const id of sandboxIds)
    await db.updateTable('sandboxes').set({ values_due: randomUUID() }).where('id', '=', id).execute();
}

/** Clears the mark, unless the values changed again meanwhile. */
export async function clearPendingValues(db: Database, { id, valuesDue }: SandboxRecord): Promise<void> {
  await db
    .updateTable('sandboxes')
    .set({ values_due: null })
    .where('id', '=', id)
    .where('values_due', '=', valuesDue)
    .execute();
}

function toSecret(row: Selectable<SecretRow>): SecretRecord {
  return {
    id: row.id,
    name: row.name,
    sealedValue: row.value,
    // Written by `putSecret` only.
    allowedHosts: JSON.parse(row.allowed_hosts) as NamedHost[],
    authorities: JSON.parse(row.upstream_ca_cert) as string[],
    createdAt: row.created_at,
    updatedAt: row.updated_at,
  };
}
