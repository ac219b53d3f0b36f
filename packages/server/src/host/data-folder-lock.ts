import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { realpath, stat } from 'node:fs/promises';
import { userInfo } from 'node:os';
import { dirname, resolve } from 'node:path';
import { isErrno } from '@svc/contract/errno';
import { untilListening } from '@svc/contract/node-listen';
import { describeLockHolder } from '@svc/engine/client';
import { EXIT } from './exit-codes.ts';
import { StartError } from './start-error.ts';

/**
 * Locks a data folder for this process until the process ends. The lock is a listening socket in the abstract namespace: the kernel
 * gives the name to one process and frees it with the process, so the lock is never stale.
 * @returns undefined when another process of ours holds it
 * @throws StartError when we may not enter the folder, and when a user of the host has taken the name
 */
export async function lockDataFolder(
  dataFolder: string,
  role: 'server' | 'web' | 'backup',
): Promise<{ release(): Promise<void> } | undefined> {
  const digest = createHash('sha256')
    .update(await enter(dataFolder))
    .digest('hex')
    .slice(0, 32);
  const name = `svc-server-${role}-${digest}`;
  const server = createServer((socket) => socket.destroy());
  try {
    server.listen(`\0${name}`);
    await untilListening(server);
  } catch (error) {
    if (!isErrno(error, 'EADDRINUSE')) throw error;
    const holder = describeLockHolder(name, dataFolder);
    if (holder === undefined) return undefined;
    throw new StartError(EXIT.failed, `${dataFolder} cannot be used: ${holder}`, { cause: error });
  }
  server.unref();
  return {
    release: async () => {
      server.close();
      await once(server, 'close');
    },
  };
}

/** @returns the folder's canonical path */
async function enter(dataFolder: string): Promise<string> {
  try {
    return await realpath(dataFolder);
  } catch (error) {
    if (!isErrno(error, 'EACCES')) throw error;
    const closed = await findClosed(resolve(dataFolder));
    const who = `the user of the server (${nameOfUser()}) may not enter ${closed}`;
    const remedy = `let it through with \`chmod o+x ${closed}\`, or choose another folder with --path`;
    throw new StartError(EXIT.failed, `${dataFolder} cannot be used: ${who}; ${remedy}`, { cause: error });
  }
}

/** The outermost folder of the path that we may not enter. */
async function findClosed(folder: string): Promise<string> {
  const outer = dirname(folder);
  const closed = outer === folder ? folder : await findClosed(outer);
  if (closed !== outer) return closed;
  const isOpen = await stat(`${outer}/.`).then(
    () => true,
    () => false,
  );
  return isOpen ? folder : outer;
}

function nameOfUser(): string {
  try {
    return userInfo().username;
  } catch {
    // A number pair of --run-as need not have a name.
    return String(process.getuid?.());
  }
}
