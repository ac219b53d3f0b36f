import type { Database } from './database.ts';

/** The names of what an organization has on the disks of the engine, by `kind id` as the engine identifies it. */
export async function findOwned(
  database: Database,
  organizationId: string,
): Promise<ReadonlyMap<string, string>> {
  const tables = [
    ['sandbox', 'sandboxes'],
    ['volume', 'volumes'],
    ['snapshot', 'snapshots'],
  ] as const;
  const owned = new Map<string, string>();
  for (const [kind, table] of tables) {
    const rows = await database
      .selectFrom(table)
      .select(['id', 'name'])
      .where('organization_id', '=', organizationId)
      .execute();
    for (const { id, name } of rows) owned.set(`${kind} ${id}`, name ?? id);
  }
  return owned;
}
