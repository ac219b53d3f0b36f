import { randomBytes } from 'node:crypto';
import { hashSecret } from './api-keys-and-tokens.ts';
import type { Database } from './database.ts';

const LINK_BYTES = 32;

/**
 * Creates the secret with which the first user of the server creates their account, once. Invalidates the one before.
 */
export async function createOwnerLink(db: Database, expiresAt: string): Promise<string> {
  const secret = randomBytes(LINK_BYTES).toString('base64url');
  await db.deleteFrom('owner_links').execute();
  await db
    .insertInto('owner_links')
    .values({ hash: hashSecret(secret), expires_at: expiresAt })
    .execute();
  return secret;
}

/** Consumes the secret. @returns false when it was used, has expired or does not exist */
export async function takeOwnerLink(db: Database, secret: string): Promise<boolean> {
  const row = await db
    .deleteFrom('owner_links')
    .where('hash', '=', hashSecret(secret))
    .where('expires_at', '>', new Date().toISOString())
    .returning('hash')
    .executeTakeFirst();
  return row !== undefined;
}
