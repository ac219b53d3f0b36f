import type { Database } from '../store/database.ts';
import { slugOf } from '../store/organizations.ts';
import { ceilingOf, toEngineCeiling, type NetworkCeilings } from './network-ceilings.ts';

/** The network ceiling of the organization with this id, in the engine's form. */
export async function findCeiling(
  database: Database,
  ceilings: NetworkCeilings,
  organizationId: string,
): Promise<readonly string[] | null> {
  const { installation, organizations } = ceilings;
  if (organizations.size === 0) return toEngineCeiling(installation);
  return toEngineCeiling(ceilingOf(ceilings, (await slugOf(database, organizationId)) ?? ''));
}
