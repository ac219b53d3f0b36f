import type { Role } from '@svc/contract/rest';
import type { Database } from './database.ts';

export interface MemberRecord {
  readonly userId: string;
  readonly email: string;
  readonly displayName: string | null;
  readonly avatarUrl: string | null;
  readonly role: Role;
  readonly joinedAt: string;
}

/** Members in the order in which they joined, one more than `limit` when there are more. */
export async function listMembers(
  db: Database,
  organizationId: string,
  { limit, after }: { readonly limit: number; readonly after: readonly (string | number)[] | null },
): Promise<readonly MemberRecord[]> {
  let query = select(db).where('members.organization_id', '=', organizationId);
  if (after !== null) {
    const [joinedAt, userId] = after as readonly [string, string];
    query = query.where((build) =>
      build.or([
        build('members.created_at', '>', joinedAt),
        build.and([build('members.created_at', '=', joinedAt), build('members.user_id', '>', userId)]),
      ]),
    );
  }
  const rows = await query
    .orderBy('members.created_at')
    .orderBy('members.user_id')
    .limit(limit + 1)
    .execute();
  return rows.map(toMember);
}

/** Number of members by organization; organizations without members are absent. */
export async function countMembers(db: Database): Promise<ReadonlyMap<string, number>> {
  const rows = await db
    .selectFrom('members')
    .select((build) => ['organization_id as id', build.fn.countAll<number | string>().as('count')])
    .groupBy('organization_id')
    .execute();
  return new Map(rows.map(({ id, count }) => [id, Number(count)]));
}

export async function findMember(
  db: Database,
  organizationId: string,
  userId: string,
): Promise<MemberRecord | undefined> {
  const row = await select(db)
    .where('members.organization_id', '=', organizationId)
    .where('members.user_id', '=', userId)
    .executeTakeFirst();
  return row === undefined ? undefined : toMember(row);
}

export async function findMemberByEmail(
  db: Database,
  organizationId: string,
  email: string,
): Promise<MemberRecord | undefined> {
  const row = await select(db)
    .where('members.organization_id', '=', organizationId)
    .where('users.email', '=', email.toLowerCase())
    .executeTakeFirst();
  return row === undefined ? undefined : toMember(row);
}

/** Whether the organization has another owner than this user. Call it after the organization was locked. */
export async function hasOtherOwner(db: Database, organizationId: string, userId: string): Promise<boolean> {
  const row = await db
    .selectFrom('members')
    .select('user_id')
    .where('organization_id', '=', organizationId)
    .where('role', '=', 'owner')
    .where('user_id', '!=', userId)
    .executeTakeFirst();
  return row !== undefined;
}

export async function removeMember(db: Database, organizationId: string, userId: string): Promise<void> {
  await db
    .deleteFrom('members')
    .where('organization_id', '=', organizationId)
    .where('user_id', '=', userId)
    .execute();
}

function select(db: Database) {
  return db
    .selectFrom('members')
    .innerJoin('users', 'users.id', 'members.user_id')
    .select([
      'members.user_id',
      'members.role',
      'members.created_at as joined_at',
      'users.email',
      'users.display_name',
      'users.avatar_url',
    ]);
}

function toMember(row: {
  readonly user_id: string;
  readonly role: string;
  readonly joined_at: string;
  readonly email: string;
  readonly display_name: string | null;
  readonly avatar_url: string | null;
}): MemberRecord {
  return {
    userId: row.user_id,
    email: row.email,
    displayName: row.display_name,
    avatarUrl: row.avatar_url,
    // The cast holds: roles are written from the same closed list.
    role: row.role as Role,
    joinedAt: row.joined_at,
  };
}
