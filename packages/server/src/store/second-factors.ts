import type { Database } from './database.ts';

export interface SecondFactorRecord {
  /** Opens with `secondFactorContext(userId)`. */
  readonly sealedSecret: string;
  readonly isConfirmed: boolean;
  readonly lastStep: number;
  readonly recoveryHashes: readonly string[];
}

export function secondFactorContext(userId: string): string {
  return `second-factor:${userId}`;
}

export async function findSecondFactor(
  db: Database,
  userId: string,
): Promise<SecondFactorRecord | undefined> {
  const row = await db
    .selectFrom('second_factors')
    .selectAll()
    .where('user_id', '=', userId)
    .executeTakeFirst();
  if (row === undefined) return undefined;
  return {
    sealedSecret: row.secret,
    isConfirmed: row.confirmed_at !== null,
    lastStep: row.last_step,
    recoveryHashes: JSON.parse(row.recovery_hashes) as string[],
  };
}

/** Stores an unconfirmed factor. A confirmed one is not replaced. @returns whether it was stored */
export async function beginSecondFactor(
  db: Database,
  userId: string,
  sealedSecret: string,
): Promise<boolean> {
  const { numInsertedOrUpdatedRows } = await db
    .insertInto('second_factors')
    .values({
      user_id: userId,
      secret: sealedSecret,
      confirmed_at: null,
      last_step: 0,
      recovery_hashes: '[]',
    })
    .onConflict((conflict) =>
      conflict
        .column('user_id')
        .doUpdateSet({ secret: sealedSecret })
        .where('second_factors.confirmed_at', 'is', null),
    )
    .executeTakeFirstOrThrow();
  return Number(numInsertedOrUpdatedRows ?? 0) > 0;
}

export async function confirmSecondFactor(
  db: Database,
  userId: string,
  recoveryHashes: readonly string[],
): Promise<void> {
  await db
    .updateTable('second_factors')
    .set({ confirmed_at: new Date().toISOString(), recovery_hashes: JSON.stringify(recoveryHashes) })
    .where('user_id', '=', userId)
    .execute();
}

/** Consumes the code of a time step. @returns false when this code or a later one was used before */
export async function takeStep(db: Database, userId: string, step: number): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable('second_factors')
    .set({ last_step: step })
    .where('user_id', '=', userId)
    .where('last_step', '<', step)
    .executeTakeFirstOrThrow();
  return Number(numUpdatedRows) > 0;
}

/** Consumes a recovery code. @returns false when there is no such code */
export async function takeRecoveryHash(db: Database, userId: string, hash: string): Promise<boolean> {
  const found = await findSecondFactor(db, userId);
  if (found === undefined || !found.recoveryHashes.includes(hash)) return false;
  const rest = found.recoveryHashes.filter((each) => each !== hash);
  const { numUpdatedRows } = await db
    .updateTable('second_factors')
    .set({ recovery_hashes: JSON.stringify(rest) })
    .where('user_id', '=', userId)
    // Compare-and-swap: of two concurrent requests with the same code, one succeeds.
    .where('recovery_hashes', '=', JSON.stringify(found.recoveryHashes))
    .executeTakeFirstOrThrow();
  return Number(numUpdatedRows) > 0;
}

export async function removeSecondFactor(db: Database, userId: string): Promise<void> {
  await db.deleteFrom('second_factors').where('user_id', '=', userId).execute();
}
