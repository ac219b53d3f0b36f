import { once } from 'node:events';
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { untilListening } from '@svc/contract/node-listen';
import type { Logger } from 'pino';
import ssh2, { type Algorithms } from 'ssh2';
import type { SshPlace } from '../../handlers/server/capabilities.ts';
import type { Orchestrator } from '../../orchestrator/orchestrator.ts';
import type { Database } from '../../store/database.ts';
import { ChannelSlots } from '../channel/channel-slots.ts';
import { EventQueue } from '../channel/event-queue.ts';
import { gatherVersionLine } from './gather-version-line.ts';
import { ensureHostKey, type HostKey } from './host-key.ts';
import { SshConnection } from './ssh-connection.ts';
import type { SshSettings } from './ssh-settings.ts';
import { UnauthenticatedConnections } from './unauthenticated-connections.ts';

const IDENT = 'svc';
const KEEP_ALIVE_MISSES = 3;
const CLOSE_MS = 2000;
/**
 * Algorithms that clients may negotiate before they log in. Not all that ssh2 supports: a key exchange of 8192 bits takes the
 * main thread thirty times as long as one over a curve, and `zlib` could unpack a thousand times the bytes sent, before a login.
 */
const ALGORITHMS: Algorithms = {
  kex: ['curve25519-sha256', 'curve25519-sha256@libssh.org', 'ecdh-sha2-nistp256', 'ecdh-sha2-nistp384'],
  compress: ['none'],
};
/** Enough for twenty keys and a key exchange; a login needs no more. */
const MAX_UNAUTHENTICATED_BYTES = 256 * 1024;

export interface SshGatewayParts {
  readonly database: Database;
  readonly orchestrator: Orchestrator;
  /** Where the host key is. */
  readonly serverFolder: string;
  readonly settings: SshSettings;
  readonly logger: Logger;
}

export interface RunningSshGateway {
  readonly place: SshPlace;
  close(): Promise<void>;
}

/** The SSH server for sandboxes: `ssh <slug>@host`. The sandbox itself holds nothing of SSH. */
export async function startSshGateway(parts: SshGatewayParts): Promise<RunningSshGateway> {
  const { settings, logger, serverFolder } = parts;
  const hostKey = await ensureHostKey(serverFolder);
  const gateway = new Gateway(parts, hostKey);
  const server = createServer((socket) => gateway.take(socket));
  server.listen({ host: settings.host, port: settings.port });
  await untilListening(server);
  // It listens on a TCP port, so its address is of this kind.
  const { port } = server.address() as AddressInfo;
  logger.info({ host: settings.host, port, hostKey: hostKey.fingerprint }, 'the SSH gateway listens');
  const { publicKey, fingerprint } = hostKey;
  return { place: { port, hostKey: publicKey, fingerprint }, close: () => gateway.close(server) };
}

class Gateway {
  readonly #parts: SshGatewayParts;
  readonly #hostKey: HostKey;
  readonly #unauthenticated: UnauthenticatedConnections;
  readonly #slots: ChannelSlots;
  readonly #events: EventQueue;
  readonly #sockets = new Set<Socket>();
  readonly #connections = new Map<SshConnection, Promise<void>>();

  constructor(parts: SshGatewayParts, hostKey: HostKey) {
    this.#parts = parts;
    this.#hostKey = hostKey;
    this.#unauthenticated = new UnauthenticatedConnections(parts.settings.connections);
    this.#slots = new ChannelSlots(parts.settings.limits);
    this.#events = new EventQueue(parts.database);
  }

  take(socket: Socket): void {
    socket.on('error', () => socket.destroy());
    const place = this.#unauthenticated.admit(socket.remoteAddress ?? '', () => socket.destroy());
    if (place === undefined) return void socket.destroy();
    const { settings } = this.#parts;
    this.#sockets.add(socket);
    // Also for clients that never send a version line.
    const timer = setTimeout(() => socket.destroy(), settings.loginMs);
    socket.once('close', () => {
      clearTimeout(timer);
      place.gone();
      this.#sockets.delete(socket);
    });
    socket.setNoDelay(true);
    const onBytes = () => {
      if (socket.bytesRead > MAX_UNAUTHENTICATED_BYTES) socket.destroy();
    };
    const onLoggedIn = () => {
      clearTimeout(timer);
      socket.off('data', onBytes);
      place.loggedIn();
    };
    // One server per client, so that the socket of a connection is known: its buffered bytes limit what is sent.
    const server = new ssh2.Server(
      {
        hostKeys: [this.#hostKey.privateKey],
        algorithms: ALGORITHMS,
        ident: IDENT,
        keepaliveInterval: settings.keepAliveMs,
        keepaliveCountMax: KEEP_ALIVE_MISSES,
      },
      (client) => this.#serve(new SshConnection({ ...this.#made(), onLoggedIn }, client, socket)),
    );
    server.injectSocket(socket);
    socket.on('data', onBytes);
    gatherVersionLine(socket);
  }

  #made() {
    const { database, orchestrator, settings, logger } = this.#parts;
    return { database, orchestrator, settings, logger, slots: this.#slots, events: this.#events };
  }

  #serve(connection: SshConnection): void {
    const over = connection.whenOver().finally(() => this.#connections.delete(connection));
    this.#connections.set(connection, over);
  }

  /** Sandboxes run on, but what was started over a session ends with it. */
  async close(server: Server): Promise<void> {
    const closed = once(server, 'close');
    server.close();
    for (const connection of this.#connections.keys()) connection.end('the server is shutting down');
    const cutOff = setTimeout(() => this.#sockets.forEach((socket) => socket.destroy()), CLOSE_MS);
    for (const socket of this.#sockets) socket.destroySoon();
    await closed;
    clearTimeout(cutOff);
    await Promise.all(this.#connections.values());
  }
}
