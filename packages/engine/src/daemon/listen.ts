import { chmod, lchown, mkdir, rm } from 'node:fs/promises';
import type { Server } from 'node:http';
import { dirname } from 'node:path';
import { untilListening } from '@svc/contract/node-listen';
import type { TlsCredentials } from '../client/tls-credentials.ts';
import type { EngineConfig } from './config.ts';
import { createHttpServer, type HttpServerOptions, type Routes, type UpgradeHandler } from './http-server.ts';
import { operatorRoutes } from './image-routes.ts';
import { createRelay } from './relay.ts';
import { createRoutes, type Daemon } from './routes.ts';
import { listenWithTls } from './tls-listener.ts';

/** Ends what it listens on, and all connections. */
export type StopListening = () => void;

/**
 * Root's own socket serves every route. The main socket and the TCP port lack the routes that read files of the host by path: root owns
 * the socket until a server gives it to its own user, and an attacker who takes over the web-facing process must not become root.
 */
export async function listen(
  daemon: Daemon,
  { socketPath, socketOwner, listenOn }: EngineConfig,
  credentials: TlsCredentials | null,
): Promise<StopListening> {
  const routes = createRoutes(daemon);
  const relay = createRelay(daemon.sandboxes);
  const options = {
    logger: daemon.logger,
    explainByDisk: (error: unknown) => daemon.kit.space.explain(error),
  };
  const servers = [
    await listenAt(rootSocketOf(socketPath), { ...routes, ...operatorRoutes(daemon.kit) }, relay, options),
    await listenAt(socketPath, routes, relay, options),
  ];
  // SAFETY: in the data folder, which only root can write to.
  if (socketOwner !== null) await lchown(socketPath, socketOwner.uid, socketOwner.gid);
  const tls =
    listenOn === null || credentials === null
      ? null
      : await listenWithTls(createHttpServer(routes, relay, options), listenOn, credentials, daemon.logger);
  return () => {
    for (const server of servers) server.close().closeAllConnections();
    tls?.close();
  };
}

async function listenAt(
  path: string,
  routes: Routes,
  relay: UpgradeHandler,
  options: HttpServerOptions,
): Promise<Server> {
  const server = createHttpServer(routes, relay, options);
  await mkdir(dirname(path), { recursive: true });
  await rm(path, { force: true });
  server.listen(path);
  await untilListening(server);
  // SAFETY: a process that may connect here controls root's engine.
  await chmod(path, 0o600);
  return server;
}

/** Root's socket for an engine whose main socket belongs to another user: `engine.sock` → `engine-root.sock`. */
function rootSocketOf(socketPath: string): string {
  return socketPath.replace(/(\.sock)?$/, '-root.sock');
}
