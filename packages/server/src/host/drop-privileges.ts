import { execFileSync } from 'node:child_process';
import { EXIT } from './exit-codes.ts';
import { StartError } from './start-error.ts';

export interface Identity {
  readonly uid: number;
  readonly gid: number;
}

/** Parses `UID:GID` or the name of a user, the value of an option. */
export function findIdentity(runAs: string, option = '--run-as'): Identity {
  const invalid = (problem: string) => new StartError(EXIT.usage, `${option}: ${problem}`);
  const checkIdentity = (identity: Identity) => {
    if (identity.uid > 0 && identity.gid > 0) return identity;
    throw invalid('must be a user other than root');
  };
  const numbers = /^(\d{1,10}):(\d{1,10})$/.exec(runAs);
  if (numbers !== null) return checkIdentity({ uid: Number(numbers[1]), gid: Number(numbers[2]) });
  if (!/^[a-z_][a-z0-9_-]{0,31}$/.test(runAs)) throw invalid(`'${runAs}' is neither a user name nor UID:GID`);
  try {
    // SAFETY: no shell, and the name matched above, so it cannot be an option.
    const entry = execFileSync('getent', ['passwd', runAs], { encoding: 'utf8' }).split(':');
    return checkIdentity({ uid: Number(entry[2]), gid: Number(entry[3]) });
  } catch (error) {
    if (error instanceof StartError) throw error;
    throw invalid(`there is no user '${runAs}'`);
  }
}

/** Permanent: nothing in this process can become root again. Modules that are needed later must be loaded before. */
export function becomeUser({ uid, gid }: Identity): void {
  if (process.getuid?.() !== 0) return;
  // SAFETY: groups first, while we may still change them; then the group, then the user, which ends all privilege.
  process.setgroups?.([gid]);
  process.setgid?.(gid);
  process.setuid?.(uid);
  if (process.getuid?.() !== uid || process.geteuid?.() !== uid || process.getegid?.() !== gid) {
    throw new Error('privileges could not be dropped');
  }
}
