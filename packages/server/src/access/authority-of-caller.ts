import type { RestOperationName } from '@svc/contract/rest';
import { REST_OPERATIONS } from '@svc/contract/rest';
import type { Database } from '../store/database.ts';
import type { OrganizationRecord } from '../store/organizations.ts';
import { ensureUser } from '../store/users.ts';
import { authorize, type Authority } from './authorize-rest.ts';
import { isOperator, type Caller } from './caller.ts';
import { DEVELOPER_EMAIL, type Principal } from './principal.ts';

/**
 * The authority with which a caller of the self-hosted surface calls the control plane. Its rights and its name in events come from the
 * same rule as there. The caller's reach to the organization's namespace has been checked before.
 * @throws PlatformError `forbidden`
 */
export async function authorityOfCaller(
  database: Database,
  operation: RestOperationName,
  caller: Caller,
  organization: OrganizationRecord,
): Promise<Authority> {
  const principal = await principalOf(database, caller, organization);
  return await authorize(database, REST_OPERATIONS[operation], undefined, principal);
}

async function principalOf(
  database: Database,
  caller: Caller,
  organization: OrganizationRecord,
): Promise<Principal> {
  if (caller.kind === 'developer') {
    return { kind: 'developer', user: await ensureUser(database, DEVELOPER_EMAIL), organization };
  }
  const { namespace, apiKey } = caller;
  const key = apiKey ?? { id: 'server-key', name: `server key for ${namespace}`, createdBy: null };
  return { kind: 'api_key', ...key, isOperator: isOperator(caller), organization };
}
