import { createHash, randomUUID } from 'node:crypto';
import type { Database, KeyRow } from './database.ts';
import { inTransaction } from './in-transaction.ts';

/** Records that a key was issued. The key itself is not stored. */
export async function recordKey(
  db: Database,
  key: string,
  claims: { readonly namespace: string; readonly createdAt: string; readonly expiresAt: string | null },
): Promise<void> {
  await db
    .insertInto('keys')
    .values({
      id: randomUUID(),
      fingerprint: createHash('sha256').update(key).digest('hex'),
      namespace: claims.namespace,
      created_at: claims.createdAt,
      expires_at: claims.expiresAt,
    })
    .onConflict((conflict) => conflict.column('fingerprint').doNothing())
    .execute();
}

export async function listKeys(db: Database): Promise<readonly KeyRow[]> {
  return await db.selectFrom('keys').selectAll().orderBy('created_at').execute();
}

/**
 * Revokes every key of every kind: the records of signed keys, the API keys of organizations and the tokens of users.
 */
export async function revokeAllKeys(db: Database): Promise<void> {
  await inTransaction(db, async (within) => {
    await within.deleteFrom('keys').execute();
    for (const table of ['api_keys', 'tokens'] as const) {
      await within
        .updateTable(table)
        .set({ revoked_at: new Date().toISOString() })
        .where('revoked_at', 'is', null)
        .execute();
    }
  });
}
