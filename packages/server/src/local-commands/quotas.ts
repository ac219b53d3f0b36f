import { setQuotas, type QuotaChanges } from '../accounting/set-quotas.ts';
import type { OrganizationRecord } from '../store/organizations.ts';
import { changeStore, CLI_ACTOR, requireOrganization, type StorePlace } from './local-store.ts';

/** Changes the named limits, and returns the organization. @throws PlatformError `invalid_request` naming the limit */
export async function setLocalQuotas(
  place: StorePlace,
  slug: string,
  changes: QuotaChanges,
): Promise<OrganizationRecord> {
  return await changeStore(place, async (transaction) => {
    const { id } = await requireOrganization(transaction, slug);
    if (Object.keys(changes).length > 0) await setQuotas(transaction, id, changes, { actor: CLI_ACTOR });
    return await requireOrganization(transaction, slug);
  });
}
