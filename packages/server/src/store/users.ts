import { randomUUID } from 'node:crypto';
import { sql, type Selectable } from 'kysely';
import type { UserRow } from './account-rows.ts';
import type { Database } from './database.ts';
import { prepareLookup } from './prepare-lookup.ts';

export interface UserRecord {
  readonly id: string;
  readonly email: string;
  readonly displayName: string | null;
  readonly avatarUrl: string | null;
  readonly createdAt: string;
  readonly updatedAt: string;
}

/** The user with this address, who is created when missing. */
export async function ensureUser(db: Database, email: string): Promise<UserRecord> {
  const address = email.toLowerCase();
  const now = new Date().toISOString();
  await db
    .insertInto('users')
    .values({
      id: randomUUID(),
      email: address,
      display_name: null,
      avatar_url: null,
      created_at: now,
      updated_at: now,
    })
    .onConflict((conflict) => conflict.column('email').doNothing())
    .execute();
  const row = await db.selectFrom('users').selectAll().where('email', '=', address).executeTakeFirstOrThrow();
  return toUser(row);
}

export async function findUser(db: Database, id: string): Promise<UserRecord | undefined> {
  const row = await selectUser(db, { id });
  return row === undefined ? undefined : toUser(row);
}

const selectUser = prepareLookup(['id'], (db, { id }) =>
  db.selectFrom('users').selectAll().where('id', '=', id),
);

export async function findUserByEmail(db: Database, email: string): Promise<UserRecord | undefined> {
  const row = await db
    .selectFrom('users')
    .selectAll()
    .where('email', '=', email.toLowerCase())
    .executeTakeFirst();
  return row === undefined ? undefined : toUser(row);
}

/** Whether there is a user with a different address. */
export async function hasUserBeside(db: Database, email: string): Promise<boolean> {
  const row = await db
    .selectFrom('users')
    .select('id')
    .where('email', '!=', email)
    .limit(1)
    .executeTakeFirst();
  return row !== undefined;
}

/** Serializes changes of a user's credentials: call this first in the transaction. */
export async function lockUser(transaction: Database, id: string): Promise<void> {
  await transaction
    .updateTable('users')
    .set({ email: sql<string>`email` })
    .where('id', '=', id)
    .execute();
}

/** Changes only the given fields; null removes a value. */
export async function updateUser(
  db: Database,
  id: string,
  change: {
    readonly displayName?: string | null | undefined;
    readonly avatarUrl?: string | null | undefined;
  },
): Promise<UserRecord> {
  const { displayName, avatarUrl } = change;
  const row = await db
    .updateTable('users')
    .set({
      ...(displayName === undefined ? {} : { display_name: displayName }),
      ...(avatarUrl === undefined ? {} : { avatar_url: avatarUrl }),
      updated_at: new Date().toISOString(),
    })
    .where('id', '=', id)
    .returningAll()
    .executeTakeFirstOrThrow();
  return toUser(row);
}

/** Deletes the user with all credentials, SSH keys and memberships. Events keep the actor without the address. */
export async function deleteUser(db: Database, id: string): Promise<void> {
  await db.deleteFrom('tokens').where('user_id', '=', id).execute();
  await db.deleteFrom('ssh_keys').where('user_id', '=', id).execute();
  await db.deleteFrom('sessions').where('user_id', '=', id).execute();
  await db.deleteFrom('sign_in_links').where('user_id', '=', id).execute();
  await db.deleteFrom('passwords').where('user_id', '=', id).execute();
  await db.deleteFrom('second_factors').where('user_id', '=', id).execute();
  await db.deleteFrom('provider_identities').where('user_id', '=', id).execute();
  await db.deleteFrom('members').where('user_id', '=', id).execute();
  await db.deleteFrom('users').where('id', '=', id).execute();
}

export function toUser(row: Selectable<UserRow>): UserRecord {
  return {
    id: row.id,
    email: row.email,
    displayName: row.display_name,
    avatarUrl: row.avatar_url,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
  };
}
