import { verifyEvents, type ChainReport } from '../store/verify-events.ts';
import { listOrganizationsEver } from '../store/organizations.ts';
import { requireOrganization, withStore, type StorePlace } from './local-store.ts';

export interface AuditReport extends ChainReport {
  readonly slug: string;
}

/** Verifies the chains of audit events of all organizations, deleted ones too, or of one. @throws PlatformError `org_not_found` */
export async function verifyLocalAudit(
  place: StorePlace,
  slug: string | undefined,
): Promise<readonly AuditReport[]> {
  return await withStore(place, async (database) => {
    const organizations =
      slug === undefined
        ? await listOrganizationsEver(database)
        : [await requireOrganization(database, slug)];
    const reports: AuditReport[] = [];
    for (const organization of organizations) {
      reports.push({ slug: organization.slug, ...(await verifyEvents(database, organization.id)) });
    }
    return reports;
  });
}
