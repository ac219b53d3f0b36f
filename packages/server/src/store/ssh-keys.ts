import { randomUUID } from 'node:crypto';
import type { Database } from './database.ts';
import { selectSandboxes, toRecord, type SandboxRecord } from './sandboxes.ts';

export interface SshKeyRecord {
  readonly id: string;
  readonly userId: string;
  readonly name: string;
  readonly publicKey: string;
  readonly fingerprint: string;
  readonly createdAt: string;
  readonly lastUsedAt: string | null;
}

/** A key that opens a sandbox, and its user. */
export interface SshAccess {
  readonly key: SshKeyRecord;
  readonly sandbox: SandboxRecord;
}

const COLUMNS = [
  'ssh_keys.id',
  'ssh_keys.user_id as userId',
  'ssh_keys.name',
  'ssh_keys.public_key as publicKey',
  'ssh_keys.fingerprint',
  'ssh_keys.created_at as createdAt',
  'ssh_keys.last_used_at as lastUsedAt',
] as const;

/** Keys of the user, newest first. */
export async function listSshKeys(db: Database, userId: string): Promise<readonly SshKeyRecord[]> {
  return await db
    .selectFrom('ssh_keys')
    .select(COLUMNS)
    .where('user_id', '=', userId)
    .orderBy('created_at', 'desc')
    .orderBy('id', 'desc')
    .execute();
}

/** @returns undefined when the user has this key already */
export async function addSshKey(
  db: Database,
  key: Pick<SshKeyRecord, 'userId' | 'name' | 'publicKey' | 'fingerprint'>,
): Promise<SshKeyRecord | undefined> {
  return await db
    .insertInto('ssh_keys')
    .values({
      id: randomUUID(),
      user_id: key.userId,
      name: key.name,
      public_key: key.publicKey,
      fingerprint: key.fingerprint,
      created_at: new Date().toISOString(),
      last_used_at: null,
    })
    .onConflict((conflict) => conflict.columns(['user_id', 'fingerprint']).doNothing())
    .returning(COLUMNS)
    .executeTakeFirst();
}

/** @returns undefined when the user has no key with this id */
export async function removeSshKey(
  db: Database,
  userId: string,
  id: string,
): Promise<SshKeyRecord | undefined> {
  return await db
    .deleteFrom('ssh_keys')
    .where('user_id', '=', userId)
    .where('id', '=', id)
    .returning(COLUMNS)
    .executeTakeFirst();
}

/** The public key as it was added by any user; undefined when no user has it. */
export async function findPublicKey(db: Database, fingerprint: string): Promise<string | undefined> {
  const row = await db
    .selectFrom('ssh_keys')
    .select('public_key')
    .where('fingerprint', '=', fingerprint)
    .executeTakeFirst();
  return row?.public_key;
}

/** Undefined when no user with this key is a member of the sandbox's organization, or the sandbox does not exist. */
export async function findSshAccess(
  db: Database,
  fingerprint: string,
  slug: string,
): Promise<SshAccess | undefined> {
  const key = await db
    .selectFrom('ssh_keys')
    .innerJoin('members', 'members.user_id', 'ssh_keys.user_id')
    .innerJoin('organizations', 'organizations.id', 'members.organization_id')
    .innerJoin('sandboxes', 'sandboxes.organization_id', 'organizations.id')
    .select([...COLUMNS, 'sandboxes.id as sandboxId'])
    .where('ssh_keys.fingerprint', '=', fingerprint)
    .where('sandboxes.slug', '=', slug)
    .where('sandboxes.removed_at', 'is', null)
    .where('organizations.deleted_at', 'is', null)
    .orderBy('ssh_keys.created_at')
    .orderBy('ssh_keys.id')
    .executeTakeFirst();
  if (key === undefined) return undefined;
  const { sandboxId, ...rest } = key;
  const row = await selectSandboxes(db).where('sandboxes.id', '=', sandboxId).executeTakeFirst();
  return row === undefined ? undefined : { key: rest, sandbox: toRecord(row) };
}

/** Records the last use, to the minute. */
export async function touchSshKey(db: Database, { id, lastUsedAt }: SshKeyRecord): Promise<void> {
  const now = new Date();
  now.setSeconds(0, 0);
  const minute = now.toISOString();
  if (lastUsedAt !== null && lastUsedAt >= minute) return;
  await db.updateTable('ssh_keys').set({ last_used_at: minute }).where('id', '=', id).execute();
}
