import { once } from 'node:events';
import { chmod, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Logger } from 'pino';
import { createServer } from '@svc/contract/node-http';
import type { ServerStatus } from './status.ts';

/** Where the operator's own commands ask, without a key: only the server's user and root can reach it. */
export function adminSocketPath(serverFolder: string): string {
  return join(serverFolder, 'admin.sock');
}

export async function openAdminSocket(
  serverFolder: string,
  gather: () => Promise<ServerStatus>,
  logger: Logger,
): Promise<{ close(): Promise<void> }> {
  const path = adminSocketPath(serverFolder);
  const server = createServer((_request, response) => {
    gather()
      .then((status) =>
        response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(status)),
      )
      .catch((error: unknown) => {
        logger.error({ err: error }, 'the status could not be gathered');
        response.writeHead(500).end();
      });
  });
  // We hold the lock of the folder, so a socket that is there was left by a server that is gone.
  await rm(path, { force: true });
  server.listen(path);
  await once(server, 'listening');
  // SAFETY: the folder is 0700 already; the socket says the same of itself.
  await chmod(path, 0o600);
  return {
    close: async () => {
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}
