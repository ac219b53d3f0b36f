import type { Database } from './database.ts';
import { prepareLookup } from './prepare-lookup.ts';

/**
 * The node that a sandbox is placed on, removed ones included.
 * @returns null when it was not placed yet; undefined when the row does not say, as that of a sandbox from before there were nodes
 */
export async function findNode(db: Database, id: string): Promise<string | null | undefined> {
  const row = await selectNode(db, { id });
  if (row === undefined) return undefined;
  return row.node ?? (row.observed === 'starting' ? null : undefined);
}

const selectNode = prepareLookup(['id'], (db, { id }) =>
  db.selectFrom('sandboxes').select(['node', 'observed']).where('id', '=', id),
);
