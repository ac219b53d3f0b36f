import { createHash, randomUUID } from 'node:crypto';
import type { Database, KeyRow } from './database.ts';

/** Notes that a key was handed out. The key itself is not kept. */
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

/** After the signing key was replaced no earlier key works any more. */
export async function forgetKeys(db: Database): Promise<void> {
  await db.deleteFrom('keys').execute();
}
