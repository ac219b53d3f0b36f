import { PlatformError } from '@svc/contract';
import type { Role } from '@svc/contract/rest';
import type { RestCall } from '../../dispatch/rest-call.ts';

/** A member cannot give or take a role above their own. */
export function requireRole(call: RestCall, role: Role): void {
  if (role !== 'owner' || call.role === 'owner') return;
  const message = `Only an owner may make, change or remove an owner; you are ${call.role}`;
  throw new PlatformError('forbidden', message, { details: { role: call.role, needed: 'owner' } });
}
