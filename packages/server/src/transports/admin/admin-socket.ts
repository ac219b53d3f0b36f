import { once } from 'node:events';
import { chmod, rm } from 'node:fs/promises';
import type { ServerResponse } from 'node:http';
import { untilListening } from '@svc/contract/node-listen';
import { PlatformError } from '@svc/contract';
import type { Logger } from 'pino';
import { createServer } from '@svc/contract/node-http';
import { listOrphans, removeOrphan, type OrphanParts } from '../../orphans/orphans.ts';
import { adminSocketPath } from './admin-socket-path.ts';
import type { ServerStatus } from './status.ts';

const ORPHANS_TIMEOUT_MS = 60_000;

export interface AdminParts extends OrphanParts {
  readonly gatherStatus: () => Promise<ServerStatus>;
  readonly logger: Logger;
}

export async function openAdminSocket(
  serverFolder: string,
  parts: AdminParts,
): Promise<{ close(): Promise<void> }> {
  const path = adminSocketPath(serverFolder);
  const server = createServer((request, response) => {
    answer(parts, request.method ?? '', new URL(request.url ?? '/', 'http://admin'))
      .then((result) => send(response, 200, result))
      .catch((error: unknown) => sendFailure(response, error, parts.logger));
  });
  // We hold the lock of the folder, so an existing socket is left over from a dead server.
  await rm(path, { force: true });
  server.listen(path);
  await untilListening(server);
  // SAFETY: the folder is 0700 already; the mode of the socket is a second barrier.
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

/** Answers a request. Unknown methods and paths get the status, which is what most commands need. */
async function answer(parts: AdminParts, method: string, { pathname, searchParams }: URL): Promise<unknown> {
  const [, what, id] = pathname.split('/');
  if (what !== 'orphans') return await parts.gatherStatus();
  const signal = AbortSignal.timeout(ORPHANS_TIMEOUT_MS);
  if (method !== 'DELETE' || id === undefined) return await listOrphans(parts, signal);
  const removed = decodeURIComponent(id);
  await removeOrphan(parts, removed, { isForced: searchParams.has('force') }, signal);
  return { removed };
}

function send(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}

function sendFailure(response: ServerResponse, error: unknown, logger: Logger): void {
  if (PlatformError.is(error)) {
    const { code, message, details } = error;
    return send(response, 400, { error: { code, message, details } });
  }
  logger.error({ err: error }, 'the operator could not be answered');
  send(response, 500, {});
}
