import { createHash, randomBytes } from 'node:crypto';
import { PlatformError } from '@svc/contract';
import type { Sealer } from '../secrets/sealer.ts';
import { hashSecret } from '../store/api-keys-and-tokens.ts';
import type { Database } from '../store/database.ts';
import { findPasswordHash } from '../store/passwords.ts';
import {
  findSecondFactor,
  secondFactorContext,
  takeRecoveryHash,
  takeStep,
  type SecondFactorRecord,
} from '../store/second-factors.ts';
import {
  findFailures,
  forgiveFailures,
  noteFailure,
  takeFailureBack,
  type Failures,
} from '../store/sign-in-failures.ts';
import { findUserByEmail, type UserRecord } from '../store/users.ts';
import { stepOfCode } from './one-time-code.ts';
import { isPassword } from './password.ts';

/** After so many in vain each one more has to wait, twice as long as the one before. */
const FREE_ATTEMPTS = 5;
const FREE_ATTEMPTS_OF_ADDRESS = 50;
const FIRST_WAIT_MS = 30_000;
const LONGEST_WAIT_MS = 15 * 60_000;
/** For so long failures count. */
export const FAILURE_MS = 60 * 60_000;
const RECOVERY_CODES = 10;
const RECOVERY_BYTES = 6;

/** Where somebody tries to sign in from; null: not known. */
export type SourceAddress = string | null;

export interface SignedIn {
  readonly user: UserRecord;
  readonly hasSecondFactor: boolean;
}

/**
 * Whether the address, the password and, where the person has one, the second factor are theirs. What is wrong is not told: who
 * tries out addresses learns nothing, in words or in time.
 */
export async function signInByPassword(
  { database, sealer }: { readonly database: Database; readonly sealer: Sealer },
  attempt: { readonly email: string; readonly password: string; readonly code: string | undefined },
  source: SourceAddress,
): Promise<SignedIn> {
  const attempts = new Attempts(database, attempt.email, source);
  await attempts.begin();
  const user = await findUserByEmail(database, attempt.email);
  const hash = user === undefined ? undefined : await findPasswordHash(database, user.id);
  if (!(await isPassword(attempt.password, hash)) || user === undefined) throw refused();
  const factor = await findSecondFactor(database, user.id);
  if (factor?.isConfirmed !== true) {
    await attempts.succeed();
    return { user, hasSecondFactor: false };
  }
  // Asked for only after the password was right, so that it tells a stranger nothing.
  if (attempt.code === undefined) throw refused('A code of your authenticator app is needed too', 'code');
  if (!(await takeCode(database, sealer, user.id, factor, attempt.code)))
    throw refused('The code is wrong, or was used before; wait for the next one', 'code');
  await attempts.succeed();
  return { user, hasSecondFactor: true };
}

/** A code of the app or a recovery code; either works once. */
export async function takeCode(
  database: Database,
  sealer: Sealer,
  userId: string,
  factor: SecondFactorRecord,
  code: string,
): Promise<boolean> {
  const typed = code.replaceAll(/[\s-]/g, '').toLowerCase();
  const step = stepOfCode(sealer.open(factor.sealedSecret, secondFactorContext(userId)), typed, Date.now());
  if (step !== undefined) return await takeStep(database, userId, step);
  return await takeRecoveryHash(database, userId, hashSecret(typed));
}

/** For whoever loses the device: each works once. */
export function newRecoveryCodes(): {
  readonly codes: readonly string[];
  readonly hashes: readonly string[];
} {
  const codes = Array.from({ length: RECOVERY_CODES }, () => randomBytes(RECOVERY_BYTES).toString('hex'));
  return { codes, hashes: codes.map(hashSecret) };
}

/** Counts, in the store, what went wrong for one account and from one address: every server of the store holds to it. */
export class Attempts {
  readonly #database: Database;
  readonly #limits: readonly { readonly subject: string; readonly free: number }[];

  constructor(database: Database, email: string, source: SourceAddress) {
    this.#database = database;
    // Not the address itself: people type their password into the wrong field.
    const account = createHash('sha256').update(email.toLowerCase()).digest('hex');
    this.#limits = [
      { subject: `account:${account}`, free: FREE_ATTEMPTS },
      ...(source === null ? [] : [{ subject: `from:${source}`, free: FREE_ATTEMPTS_OF_ADDRESS }]),
    ];
  }

  /** Counts as a failure until it has succeeded, or many at once would be judged by one count. @throws PlatformError `rate_limited` */
  async begin(): Promise<void> {
    const before = new Date(Date.now() - FAILURE_MS).toISOString();
    for (const { subject, free } of this.#limits) {
      refuseWhileWaiting(await findFailures(this.#database, subject), free);
      await noteFailure(this.#database, subject, before);
    }
  }

  /** Forgives the account; who knows one password may not try others' for it. */
  async succeed(): Promise<void> {
    const [account, address] = this.#limits;
    if (account !== undefined) await forgiveFailures(this.#database, account.subject);
    if (address !== undefined) await takeFailureBack(this.#database, address.subject);
  }
}

function refuseWhileWaiting(failures: Failures | undefined, free: number): void {
  if (failures === undefined || failures.count < free) return;
  const waitMs = Math.min(FIRST_WAIT_MS * 2 ** (failures.count - free), LONGEST_WAIT_MS);
  const seconds = Math.ceil((Date.parse(failures.lastAt) + waitMs - Date.now()) / 1000);
  if (seconds <= 0) return;
  const message = `Too many attempts to sign in; try again in ${seconds} s`;
  throw new PlatformError('rate_limited', message, { details: { retry_after_seconds: seconds } });
}

function refused(message = 'The e-mail address or the password is wrong', needed?: string): PlatformError {
  return new PlatformError('invalid_api_key', message, needed === undefined ? {} : { details: { needed } });
}
