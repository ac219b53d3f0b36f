import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { realpath } from 'node:fs/promises';
import { isErrno } from '@svc/contract/errno';

/**
 * Holds a data folder for this process until it ends, however it ends. The lock is a listening socket in the abstract
 * namespace: the kernel lets one process have the name and frees it with the process, so nothing stale can be left.
 * @returns undefined when another process holds it.
 */
export async function lockDataFolder(
  dataFolder: string,
  role: 'server' | 'web',
): Promise<{ release(): Promise<void> } | undefined> {
  const digest = createHash('sha256')
    .update(await realpath(dataFolder))
    .digest('hex')
    .slice(0, 32);
  const server = createServer((socket) => socket.destroy());
  try {
    server.listen(`\0svc-server-${role}-${digest}`);
    await once(server, 'listening');
  } catch (error) {
    if (isErrno(error, 'EADDRINUSE')) return undefined;
    throw error;
  }
  server.unref();
  return {
    release: async () => {
      server.close();
      await once(server, 'close');
    },
  };
}
