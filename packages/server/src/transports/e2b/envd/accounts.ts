import { posix } from 'node:path';
import type { GuestUser, GuestUsers } from '../../../files/guest-users.ts';
import { ConnectError } from '../wire/connect-error.ts';

/** The user that E2B's clients mean when they name none. */
const DEFAULT_USER = 'user';
const SUPERUSER: Account = { name: 'root', uid: 0, gid: 0, home: '/root' };

export type Account = GuestUser;

/**
 * The account of this name. Without a name `user`, or root where an image has no such user.
 * @throws ConnectError `unauthenticated`, as E2B's clients expect it
 */
export function requireAccount(users: GuestUsers, name: string | null): Account {
  const found = users.find(name ?? DEFAULT_USER);
  if (found !== undefined) return found;
  if (name === null || name === SUPERUSER.name) return SUPERUSER;
  throw new ConnectError('unauthenticated', `invalid username: '${name}'`);
}

/** The path as the account means it: absolute, below its home with `~`, or relative to its home. */
export function pathFor({ home }: Account, path: string): string {
  if (path.includes('\0')) throw new ConnectError('invalid_argument', 'a path must not contain NUL');
  if (path === '~' || path.startsWith('~/')) return posix.join(home, path.slice(1));
  if (path.startsWith('~'))
    throw new ConnectError('invalid_argument', `${path}: only ~ and ~/ are understood, for the own home`);
  return posix.resolve(home, path);
}
