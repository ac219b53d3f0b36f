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
  type FailureRule,
  type Failures,
} from '../store/sign-in-failures.ts';
import { findUserByEmail, type UserRecord } from '../store/users.ts';
import { stepOfCode } from './one-time-code.ts';
import { isPassword } from './password.ts';

/** How long a failure counts. */
export const FAILURE_MS = 60 * 60_000;
/** After several failures each further one makes the next attempt wait about twice as long. */
const RULE = { waitsMs: [30, 60, 120, 240, 480, 900].map((s) => s * 1000), rememberedMs: FAILURE_MS };
const RULES = { account: { ...RULE, free: 5 }, address: { ...RULE, free: 50 } } as const;
const RECOVERY_CODES = 10;
const RECOVERY_BYTES = 6;

/** The address that the attempt comes from; null: not known. */
export type SourceAddress = string | null;

export interface SignedIn {
  readonly user: UserRecord;
  readonly hasSecondFactor: boolean;
  /** The only organization that the session is valid for; absent: every one of the user. */
  readonly organizationId?: string | null;
}

/**
 * Checks the address, the password and, for a user with a second factor, its code. The error does not say which was wrong, and the check
 * takes equally long, so that guessing addresses reveals nothing.
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
  // Asked for only after the password was right, so that a guess reveals nothing.
  if (attempt.code === undefined || !(await takeCode(database, sealer, user.id, factor, attempt.code)))
    throw noCode(attempt.code);
  await attempts.succeed();
  return { user, hasSecondFactor: true };
}

/**
 * Six digits are few, so attempts are limited like attempts to sign in. @returns whether the code was right @throws PlatformError
 * `rate_limited`
 */
export async function proveCode(
  { database, sealer }: { readonly database: Database; readonly sealer: Sealer },
  { id, email }: Pick<UserRecord, 'id' | 'email'>,
  { factor, code }: { readonly factor: SecondFactorRecord; readonly code: string },
  source: SourceAddress,
): Promise<boolean> {
  const attempts = new Attempts(database, email, source);
  await attempts.begin();
  const isRight = await takeCode(database, sealer, id, factor, code);
  if (isRight) await attempts.succeed();
  return isRight;
}

/** A code of the app or a recovery code; either works once. */
async function takeCode(
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

/** For users who lose their device: each code works once. */
export function newRecoveryCodes(): {
  readonly codes: readonly string[];
  readonly hashes: readonly string[];
} {
  const codes = Array.from({ length: RECOVERY_CODES }, () => randomBytes(RECOVERY_BYTES).toString('hex'));
  return { codes, hashes: codes.map(hashSecret) };
}

/** Counts failed attempts per account and per address in the store, so that all servers of the store enforce the limit. */
export class Attempts {
  readonly #database: Database;
  readonly #account: string;
  readonly #address: string | null;

  constructor(database: Database, email: string, source: SourceAddress) {
    this.#database = database;
    // Not the address itself: people type their password into the wrong field.
    this.#account = `account:${createHash('sha256').update(email.toLowerCase()).digest('hex')}`;
    this.#address = source === null ? null : `from:${source}`;
  }

  /**
   * Counts as a failure until it has succeeded; otherwise parallel attempts would all be judged by one count. An attempt that is refused
   * for its address does not count against the account, or attackers could lock its owner out.
   * @throws PlatformError `rate_limited`
   */
  async begin(): Promise<void> {
    if (this.#address !== null) await this.#note(this.#address, RULES.address);
    try {
      await this.#note(this.#account, RULES.account);
    } catch (error) {
      if (this.#address !== null) await takeFailureBack(this.#database, this.#address);
      throw error;
    }
  }

  /** Resets the account's count but not the address's: knowing one password gives no further guesses at other accounts. */
  async succeed(): Promise<void> {
    await forgiveFailures(this.#database, this.#account);
    if (this.#address !== null) await takeFailureBack(this.#database, this.#address);
  }

  async #note(subject: string, rule: FailureRule): Promise<void> {
    if (await noteFailure(this.#database, subject, rule)) return;
    const failures = await findFailures(this.#database, subject);
    // The count was reset by a successful sign-in in between: no wait.
    const seconds = failures === undefined ? 1 : secondsToWait(failures, rule);
    const message = `Too many attempts to sign in; try again in ${seconds} s`;
    throw new PlatformError('rate_limited', message, { details: { retry_after_seconds: seconds } });
  }
}

function secondsToWait({ count, lastAt }: Failures, { free, waitsMs }: FailureRule): number {
  const waitMs = waitsMs[Math.min(Math.max(0, count - free), waitsMs.length - 1)] ?? 0;
  return Math.max(1, Math.ceil((Date.parse(lastAt) + waitMs - Date.now()) / 1000));
}

function refused(): PlatformError {
  return new PlatformError('sign_in_failed', 'The e-mail address or the password is wrong');
}

/** Says that a second factor is required or, when a code was given, that it is wrong. */
export function noCode(typed: string | undefined): PlatformError {
  if (typed === undefined)
    return new PlatformError('sign_in_failed', 'A code of your authenticator app is needed too', {
      details: { needed: 'code' },
    });
  return new PlatformError('sign_in_failed', 'The code is wrong, or was used before; wait for the next one', {
    details: { needed: 'code', field: 'code' },
  });
}
