import { posix } from 'node:path';
import type { ChannelFiles } from '@svc/contract';
import { ConnectError } from '../wire/connect-error.ts';

/** The user that E2B's clients mean when they name none. */
const DEFAULT_USER = 'user';
const SUPERUSER: Account = { name: 'root', uid: 0, gid: 0, home: '/root' };
const MAX_FILE_BYTES = 1024 * 1024;

export interface Account {
  readonly name: string;
  readonly uid: number;
  readonly gid: number;
  readonly home: string;
}

/** Users and groups of a sandbox, as its files say at one moment. */
export class Accounts {
  readonly #users: readonly Account[];
  readonly #groups: ReadonlyMap<number, string>;

  private constructor(users: readonly Account[], groups: ReadonlyMap<number, string>) {
    this.#users = users;
    this.#groups = groups;
  }

  static async read(files: ChannelFiles, signal: AbortSignal): Promise<Accounts> {
    const [passwd, group] = await Promise.all(
      ['/etc/passwd', '/etc/group'].map(async (path) => await readLines(files, path, signal)),
    );
    const users = (passwd ?? []).map(([name = '', , uid, gid, , home = '/']) => ({
      name,
      uid: Number(uid),
      gid: Number(gid),
      home: home === '' ? '/' : home,
    }));
    const groups = new Map((group ?? []).map(([name = '', , gid]) => [Number(gid), name]));
    return new Accounts(users, groups);
  }

  /**
   * The account of this name. Without a name `user`, or root where an image has no such user.
   * @throws ConnectError `unauthenticated`, as E2B's clients expect it
   */
  require(name: string | null): Account {
    const found = this.#users.find((user) => user.name === (name ?? DEFAULT_USER));
    if (found !== undefined) return found;
    if (name === null || name === SUPERUSER.name) return SUPERUSER;
    throw new ConnectError('unauthenticated', `invalid username: '${name}'`);
  }

  ownerName(uid: number): string {
    return this.#users.find((user) => user.uid === uid)?.name ?? String(uid);
  }

  groupName(gid: number): string {
    return this.#groups.get(gid) ?? String(gid);
  }
}

/** The path as the account means it: absolute, below its home with `~`, or relative to its home. */
export function pathFor({ home }: Account, path: string): string {
  if (path === '~' || path.startsWith('~/')) return posix.join(home, path.slice(1));
  if (path.startsWith('~'))
    throw new ConnectError('invalid_argument', `${path}: only ~ and ~/ are understood, for the own home`);
  return posix.resolve(home, path);
}

/** None when the image has no such file. */
async function readLines(
  files: ChannelFiles,
  path: string,
  signal: AbortSignal,
): Promise<readonly string[][]> {
  const bytes = await files.readFile(path, { maxBytes: MAX_FILE_BYTES }, signal).catch(() => undefined);
  const text = Buffer.from(bytes ?? []).toString('utf8');
  return text
    .split('\n')
    .filter((line) => line.includes(':'))
    .map((line) => line.split(':'));
}
