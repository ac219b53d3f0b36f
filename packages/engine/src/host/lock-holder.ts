import { readdirSync, readFileSync, readlinkSync, statSync } from 'node:fs';

export interface LockHolder {
  readonly pid: number;
  readonly uid: number;
}

/**
 * The process that listens at an abstract address (`\0name`), which any user of the host can do. Undefined when there is none, or when
 * its descriptors are unreadable for us; root can read them.
 */
export function findLockHolder(name: string): LockHolder | undefined {
  const listeners = readFileSync('/proc/net/unix', 'utf8').split('\n');
  const inode = listeners
    .map((line) => line.split(/\s+/))
    .find(([, , , , , , , path]) => path === `@${name}`)?.[6];
  if (inode === undefined) return undefined;
  const pid = readdirSync('/proc').find(
    (entry) => /^\d+$/.test(entry) && hasOpen(entry, `socket:[${inode}]`),
  );
  return pid === undefined ? undefined : { pid: Number(pid), uid: statSync(`/proc/${pid}`).uid };
}

function hasOpen(pid: string, target: string): boolean {
  try {
    const folder = `/proc/${pid}/fd`;
    return readdirSync(folder).some((descriptor) => readlinkSync(`${folder}/${descriptor}`) === target);
  } catch {
    // It has ended, closed one of them in between, or we may not read it.
    return false;
  }
}

/**
 * Message for an operator when another user of the host holds the lock of the data folder; undefined when the holder is root, the owner
 * of the folder, or the caller's own user.
 */
export function describeLockHolder(name: string, dataFolder: string): string | undefined {
  const holder = findLockHolder(name);
  const ours = [0, process.getuid?.(), statSync(dataFolder).uid];
  if (holder === undefined || ours.includes(holder.uid)) return undefined;
  return `process ${holder.pid} of user ${holder.uid} holds its lock (@${name} in /proc/net/unix), and is not ours; end it with: kill ${holder.pid}`;
}
