import { PlatformError } from '@svc/contract';
import type { Authority } from '../../../access/authorize-rest.ts';
import { authorityOfMaker } from '../../../handlers/files/link-maker.ts';
import type { Database } from '../../../store/database.ts';
import type { OrganizationRecord } from '../../../store/organizations.ts';

/** The authority of a token: acts in the name of the credential that it was given to, with the rights of a member. */
export type TokenAuthority = Authority & { readonly organization: OrganizationRecord };

/**
 * Looked up at each use, so that a token ends with its credential on all servers of a database at once.
 * @returns undefined when the credential was revoked, has expired, or may not act in the organization any more
 */
export async function authorityOf(
  database: Database,
  by: string,
  owner: { readonly organizationId: string },
): Promise<TokenAuthority | undefined> {
  try {
    const authority = await authorityOfMaker(database, by, owner);
    return { ...authority, role: 'member', isOperator: false };
  } catch (error) {
    if (PlatformError.is(error, 'forbidden')) return undefined;
    throw error;
  }
}
