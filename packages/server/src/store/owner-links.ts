import { randomBytes } from 'node:crypto';
import { hashSecret } from './api-keys-and-tokens.ts';
import type { Database } from './database.ts';

const LINK_BYTES = 32;

/** A secret with which the first person of the server makes their account, once. The one before is void. */
export async function createOwnerLink(db: Database, expiresAt: string): Promise<string> {
  const secret = randomBytes(LINK_BYTES).toString('base64url');
  await db.deleteFrom('owner_links').execute();
  await db
    .insertInto('owner_links')
    .values({ hash: hashSecret(secret), expires_at: expiresAt })
    .execute();
  return secret;
}

/** Uses it up. @returns false when it was used, has expired or never was */
export async function takeOwnerLink(db: Database, secret: string): Promise<boolean> {
  const row = await db
    .deleteFrom('owner_links')
    .where('hash', '=', hashSecret(secret))
    .where('expires_at', '>', new Date().toISOString())
    .returning('hash')
    .executeTakeFirst();
  return row !== undefined;
}
