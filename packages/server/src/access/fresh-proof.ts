import { PlatformError } from '@svc/contract';
import type { Sealer } from '../secrets/sealer.ts';
import type { Database } from '../store/database.ts';
import { findPasswordHash } from '../store/passwords.ts';
import { findSecondFactor } from '../store/second-factors.ts';
import type { UserRecord } from '../store/users.ts';
import { isPassword } from './password.ts';
import { Attempts, proveCode, type SourceAddress } from './sign-in.ts';

export interface FreshProof {
  readonly password: string | undefined;
  readonly code?: string | undefined;
}

/**
 * Makes the person prove again, by password or by a code of the second factor, that it is them, in case their browser or a token of
 * theirs was taken over. Users with neither are not asked.
 * @throws PlatformError `invalid_request` when no proof is given, `forbidden` when it is wrong, `rate_limited`
 */
export async function requireFreshProof(
  parts: { readonly database: Database; readonly sealer: Sealer },
  user: UserRecord,
  { password, code }: FreshProof,
  source: SourceAddress,
): Promise<void> {
  const factor = await findSecondFactor(parts.database, user.id);
  if (code !== undefined && factor?.isConfirmed === true) {
    if (await proveCode(parts, user, { factor, code }, source)) return;
    throw wrong('code');
  }
  if (password !== undefined || factor?.isConfirmed !== true)
    return await requirePassword(parts.database, user, password, source);
  throw missing('current_password', 'is needed, or a code of your second factor');
}

/** Users without a password are not asked. @throws as `requireFreshProof` */
export async function requirePassword(
  database: Database,
  user: UserRecord,
  password: string | undefined,
  source: SourceAddress,
): Promise<void> {
  const known = await findPasswordHash(database, user.id);
  if (known === undefined) return;
  if (password === undefined) throw missing('current_password', 'is needed');
  const attempts = new Attempts(database, user.email, source);
  await attempts.begin();
  if (!(await isPassword(password, known))) throw wrong('current_password');
  await attempts.succeed();
}

function missing(field: string, reason: string): PlatformError {
  return new PlatformError('invalid_request', `${field} ${reason}`, { details: { field, reason } });
}

function wrong(field: string): PlatformError {
  return new PlatformError('forbidden', `${field} is wrong`, { details: { field } });
}
