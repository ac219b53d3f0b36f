import type { UserRecord } from '../store/users.ts';
import type { RestCall } from './rest-call.ts';

/** For operations that only users may call. */
export function requireUser({ user }: Pick<RestCall, 'user'>): UserRecord {
  if (user === null) throw new Error('this operation was let through without a user');
  return user;
}
