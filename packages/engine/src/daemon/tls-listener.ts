import { constants } from 'node:crypto';
import type { Server as HttpServer } from 'node:http';
import type { Server, TLSSocket } from 'node:tls';
import { untilListening } from '@svc/contract/node-listen';
import { PlatformError } from '@svc/contract/errors';
import type { Logger } from 'pino';
import type { TlsCredentials } from '../client/tls-credentials.ts';
import { rememberTcp } from './below-tls.ts';

/**
 * A DNS name that the certificate of every server has. The certificate of an engine has the names of its host, so no engine commands
 * another one, although both are signed by the same authority.
 */
export const SERVER_NAME = 'svc-server';

export interface TcpPlace {
  readonly host: string;
  readonly port: number;
}

export interface TlsListener {
  readonly port: number;
  /** Ends its connections too. */
  close(): void;
}

export interface ListenTimes {
  /** A connection that has not shown its certificate by then is closed. */
  readonly handshakeMs?: number;
  /** How often it is looked whether the files were replaced. */
  readonly lookMs?: number;
}

const HANDSHAKE_MS = 10_000;
const KEEP_ALIVE_MS = 10_000;
/** Bounds the memory of connections that have not shown a certificate yet. */
const MAX_CONNECTIONS = 16_384;
const LOOK_MS = 5000;
const REPORT_MS = 10_000;

/**
 * Serves `http` on a TCP port with TLS 1.3, to callers whose certificate is signed by the authority and has the name of a server. The
 * connection of any other is closed before a byte of HTTP is read or written. Files that are replaced are used by new connections.
 */
export async function listenWithTls(
  http: HttpServer,
  { host, port }: TcpPlace,
  credentials: TlsCredentials,
  logger: Logger,
  { handshakeMs = HANDSHAKE_MS, lookMs = LOOK_MS }: ListenTimes = {},
): Promise<TlsListener> {
  const settings = () => settingsOf(credentials);
  const refusals = new Refusals(logger);
  const sockets = new Set<TLSSocket>();
  const server = createTlsServer(settings(), handshakeMs, refusals);
  server.on('secureConnection', (socket) => {
    if (socket.destroyed) return;
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
    http.emit('connection', socket);
  });
  server.listen({ host, port });
  await untilListening(server).catch((error: unknown) => {
    throw notListening({ host, port }, error);
  });
  let used = credentials.current;
  const timer = setInterval(() => {
    if (credentials.current === used) return;
    used = credentials.current;
    server.setSecureContext(settings());
    logger.info('the replaced certificate is used from now on');
  }, lookMs);
  return {
    port: (server.address() as { port: number }).port,
    close: () => {
      clearInterval(timer);
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}

function settingsOf({ current }: TlsCredentials) {
  return {
    ...current,
    minVersion: 'TLSv1.3' as const,
    // A resumed session would skip the check of a certificate that has expired, or whose authority was replaced.
    secureOptions: constants.SSL_OP_NO_TICKET,
  };
}

/** Destroys the connections of callers that are refused. */
function createTlsServer(
  settings: ReturnType<typeof settingsOf>,
  handshakeMs: number,
  refusals: Refusals,
): Server {
  const server = process.getBuiltinModule('node:tls').createServer({
    ...settings,
    requestCert: true,
    rejectUnauthorized: true,
    handshakeTimeout: handshakeMs,
    noDelay: true,
    keepAlive: true,
    keepAliveInitialDelay: KEEP_ALIVE_MS,
  });
  rememberTcp(server);
  server.maxConnections = MAX_CONNECTIONS;
  server.on('tlsClientError', ({ message }, socket) => {
    refusals.note(socket.remoteAddress, message);
    // Node leaves one whose handshake is too late open.
    socket.destroy();
  });
  server.on('secureConnection', (socket) => {
    socket.on('error', () => socket.destroy());
    if (isOfServer(socket)) return;
    refusals.note(socket.remoteAddress, `its certificate does not have the name ${SERVER_NAME}`);
    socket.destroy();
  });
  return server;
}

function isOfServer(socket: TLSSocket): boolean {
  const certificate = socket.getPeerX509Certificate();
  const options = { subject: 'never', wildcards: false } as const;
  return !socket.isSessionReused() && certificate?.checkHost(SERVER_NAME, options) !== undefined;
}

function notListening({ host, port }: TcpPlace, error: unknown): unknown {
  if (!(error instanceof Error) || !('code' in error)) return error;
  const message = `--listen ${host}:${port} cannot be listened on (${String(error.code)}); choose an address of this machine and a free port`;
  return new PlatformError('unavailable', message, { cause: error });
}

/** Logs refused callers, but not each: any host that reaches the port can cause them. */
class Refusals {
  readonly #logger: Logger;
  #count = 0;
  #reportedAt = Number.NEGATIVE_INFINITY;

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  note(address: string | undefined, reason: string): void {
    this.#count += 1;
    const now = performance.now();
    if (now - this.#reportedAt < REPORT_MS) return;
    this.#logger.warn({ address, reason: reason.trim(), count: this.#count }, 'a caller was refused');
    this.#count = 0;
    this.#reportedAt = now;
  }
}
