import { ChannelError, FileFailed, PlatformError, type ChannelFiles } from '@svc/contract';

export const PASSWD = '/etc/passwd';
export const GROUP = '/etc/group';
const MAX_BYTES = 256 * 1024;
/** The last one stands for "unchanged" in calls of the kernel. */
const MAX_ID = 0xffff_fffe;

export interface GuestUser {
  readonly name: string;
  readonly uid: number;
  readonly gid: number;
  readonly home: string;
}

export interface OwnerIds {
  readonly uid: number;
  readonly gid: number;
}

/** The users and groups of a sandbox, as its own files name them at this moment. */
export class GuestUsers {
  readonly #users: readonly GuestUser[];
  readonly #groups: ReadonlyMap<string, number>;

  private constructor(passwd: string, group: string) {
    this.#users = fieldsOf(passwd).flatMap(toUser);
    this.#groups = new Map(fieldsOf(group).flatMap(toGroup));
  }

  static async read(files: ChannelFiles, signal: AbortSignal): Promise<GuestUsers> {
    const [passwd, group] = await Promise.all([
      readOptional(files, PASSWD, signal),
      readOptional(files, GROUP, signal),
    ]);
    return new GuestUsers(passwd, group);
  }

  /** By name, or by number. */
  find(user: string): GuestUser | undefined {
    return (
      this.#users.find(({ name }) => name === user) ??
      this.#users.find(({ uid }) => String(uid) === user) ??
      (isId(user) ? { name: user, uid: Number(user), gid: Number(user), home: '/' } : undefined)
    );
  }

  /** @param owner `user` or `user:group`, names or numbers. @throws PlatformError `invalid_request` that says which is unknown */
  idsOf(owner: string): OwnerIds {
    const [name = '', group] = owner.split(':');
    const user = this.find(name);
    if (user === undefined) throw unknown('user', name, PASSWD);
    if (group === undefined) return { uid: user.uid, gid: user.gid };
    const gid = this.#groups.get(group) ?? (isId(group) ? Number(group) : undefined);
    if (gid === undefined) throw unknown('group', group, GROUP);
    return { uid: user.uid, gid };
  }

  userName(uid: number): string {
    return this.#users.find((user) => user.uid === uid)?.name ?? String(uid);
  }

  groupName(gid: number): string {
    for (const [name, id] of this.#groups) if (id === gid) return name;
    return String(gid);
  }
}

/** An image may lack the file; what cannot be read as one names no user. */
async function readOptional(files: ChannelFiles, path: string, signal: AbortSignal): Promise<string> {
  try {
    return Buffer.from(await files.readFile(path, { maxBytes: MAX_BYTES }, signal)).toString('utf8');
  } catch (error) {
    if (error instanceof FileFailed) return '';
    if (error instanceof ChannelError && error.kind === 'refused') return '';
    throw error;
  }
}

function fieldsOf(text: string): string[][] {
  return text.split('\n').map((line) => line.split(':'));
}

function toUser([name = '', , uid = '', gid = '', , home = '']: readonly string[]): GuestUser[] {
  if (name === '' || !isId(uid) || !isId(gid)) return [];
  return [{ name, uid: Number(uid), gid: Number(gid), home: home.startsWith('/') ? home : '/' }];
}

function toGroup([name = '', , gid = '']: readonly string[]): [string, number][] {
  return name === '' || !isId(gid) ? [] : [[name, Number(gid)]];
}

function isId(text: string): boolean {
  return /^\d{1,10}$/.test(text) && Number(text) <= MAX_ID;
}

function unknown(kind: 'user' | 'group', name: string, path: string): PlatformError {
  const reason = `names a ${kind} that ${path} of the sandbox does not have: ${name}`;
  return new PlatformError('invalid_request', `owner ${reason}; give its number, or add the ${kind} first`, {
    details: { field: 'owner', reason },
  });
}
