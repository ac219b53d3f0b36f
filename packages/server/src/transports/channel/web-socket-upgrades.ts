import type { IncomingMessage, IncomingHttpHeaders } from 'node:http';
import { isIP, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { PlatformError } from '@svc/contract';
import { ServerResponse } from '@svc/contract/node-http';
import { pathsOf } from '@svc/contract/rest';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Logger } from 'pino';
import { type WebSocket, WebSocketServer } from 'ws';
import type { Authority } from '../../access/authorize-rest.ts';
import type { FairLimit, Owner } from '../../access/fair-limit.ts';
import { badField } from '../../dispatch/rest-dispatch.ts';
import type { OrganizationRecord } from '../../store/organizations.ts';
import type { SandboxRecord } from '../../store/sandboxes.ts';
import type { RateLimiter } from '../http/rate-limiter.ts';
import { REST_PREFIX, sendRestFailure } from '../http/rest-failure.ts';
import { sessionOf } from '../rest/session-cookie.ts';
import { BEARER_PROTOCOL } from './bearer-protocol.ts';
import { ChannelAccess, type ChannelAccessParts } from './channel-access.ts';
import { ChannelSlots, type ChannelLimits } from './channel-slots.ts';
import { CLOSE } from './close.ts';
import { MaskRemover } from './mask-remover.ts';

/** The subprotocol of the channels, for clients that have to name one. */
const PROTOCOL = 'svc.channel';

/** One frame of the command channel with its length word, or one message of the channel for code. */
const MAX_MESSAGE_BYTES = 4 + 4 * 1024 * 1024;
const CLOSE_MS = 2000;
const METHODS_REFUSED = ['HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'];

export interface UpgradeParts extends ChannelAccessParts {
  readonly rateLimiter: RateLimiter | null;
  /** Limits connections that are held open. */
  readonly streams: FairLimit;
  readonly limits: ChannelLimits;
  readonly logger: Logger;
}

/** A request for an upgrade to WebSocket. */
interface Upgrade {
  readonly socket: Duplex;
  readonly head: Buffer;
}

/** An authorized caller who waits for the WebSocket to the sandbox. */
export interface Visit {
  readonly request: FastifyRequest;
  readonly sandbox: SandboxRecord;
  readonly authority: Authority & { readonly organization: OrganizationRecord };
  /** The owner to whose share the connection counts. */
  readonly owner: Owner;
  /** Null: unknown. */
  readonly sourceAddress: string | null;
  /** The socket of the connection, before and after the upgrade. */
  readonly socket: Duplex;
  readonly accept: () => Promise<WebSocket>;
  /** Checks the permission again. @throws PlatformError */
  readonly recheck: () => Promise<void>;
}

/** Resolves when the WebSocket is open; `over` resolves when it is closed. */
export type Serve = (visit: Visit) => Promise<{ readonly over: Promise<void> }>;

/**
 * Upgrades to WebSockets of a sandbox, below `/v1/sandboxes/{id}` and `/v1/orgs/{slug}/sandboxes/{id}`. Failures
 * before the upgrade get an ordinary HTTP answer of the control plane.
 */
export class WebSocketUpgrades {
  readonly #server: FastifyInstance;
  readonly #parts: UpgradeParts;
  readonly #access: ChannelAccess;
  readonly #slots: ChannelSlots;
  readonly #upgrades = new WeakMap<IncomingMessage, Upgrade>();
  readonly #sockets = new WebSocketServer({
    noServer: true,
    clientTracking: true,
    maxPayload: MAX_MESSAGE_BYTES,
    perMessageDeflate: false,
    handleProtocols: chooseProtocol,
  });

  constructor(server: FastifyInstance, parts: UpgradeParts) {
    this.#server = server;
    this.#parts = parts;
    this.#access = new ChannelAccess(parts);
    this.#slots = new ChannelSlots(parts.limits);
    server.server.on('upgrade', (request, socket, head) => {
      this.#upgrades.set(request, { socket, head });
      answerOver(server, request, socket);
    });
  }

  /** `path` is relative to the sandbox. */
  add(path: string, serve: Serve): void {
    const { logger } = this.#parts;
    void this.#server.register(
      async (scope) => {
        scope.setErrorHandler((error, request, reply) => sendRestFailure(error, request, reply, logger));
        const paths = pathsOf({ path: `/sandboxes/{sandbox_id}/${path}`, audience: 'both' });
        for (const { path: each } of paths) {
          const url = each.replaceAll(/\{(\w+)\}/g, ':$1');
          scope.get(url, { exposeHeadRoute: false }, (request, reply) => this.#open(request, reply, serve));
          scope.route({ method: METHODS_REFUSED, url, handler: refuseMethod });
        }
        await Promise.resolve();
      },
      { prefix: REST_PREFIX },
    );
  }

  /** Closes all channels and ends what was started over them; the sandboxes continue to run. */
  async close(): Promise<void> {
    const { clients } = this.#sockets;
    for (const client of clients) client.close(CLOSE.goingAway, 'the server is shutting down');
    const cutOff = setTimeout(() => clients.forEach((client) => client.terminate()), CLOSE_MS);
    await new Promise<void>((resolve) => this.#sockets.close(() => resolve()));
    clearTimeout(cutOff);
  }

  async #open(request: FastifyRequest, reply: FastifyReply, serve: Serve): Promise<void> {
    const upgrade = this.#upgrades.get(request.raw);
    const { slug, sandbox_id: id = '' } = request.params as Record<string, string>;
    const authorization = bearerOf(request.headers) ?? sessionOfPage(request);
    const authority = await this.#access.admit(slug, authorization);
    const { organization } = authority;
    this.#parts.rateLimiter?.take(organization.slug, reply);
    if (upgrade === undefined) throw needsUpgrade(request);
    requireHandshake(request);
    const sandbox = await this.#access.find(organization, id, request.query);
    const owner = authority.isOperator ? null : organization.slug;
    const leave = this.#parts.streams.enter(owner);
    const { socket } = upgrade;
    // Registered before further checks: the share is released with the connection, also after a refusal.
    socket.once('close', leave);
    const release = this.#slots.take(sandbox.id, organization.id);
    const address = request.socket.remoteAddress ?? '';
    const sourceAddress = isIP(address) === 0 ? null : address;
    const accept = () => this.#accept(request, reply, upgrade);
    const recheck = async () => {
      const now = await this.#access.admit(slug, authorization);
      // The slug may belong to another organization by now.
      if (now.organization.id !== organization.id) throw new PlatformError('forbidden', 'not yours any more');
    };
    try {
      const { over } = await serve({
        request,
        sandbox,
        authority,
        owner,
        sourceAddress,
        socket,
        accept,
        recheck,
      });
      void over.finally(release);
    } catch (error) {
      release();
      throw error;
    }
  }

  async #accept(request: FastifyRequest, reply: FastifyReply, { socket, head }: Upgrade): Promise<WebSocket> {
    reply.hijack();
    reply.raw.detachSocket(reply.raw.socket as NonNullable<typeof reply.raw.socket>);
    return await new Promise((resolve, reject) => {
      // The library refuses a bad handshake without an event.
      socket.once('close', () => reject(new Error('the handshake failed')));
      this.#sockets.handleUpgrade(request.raw, socket, head, (client) => {
        const masks = new MaskRemover();
        // Must run before the library's own listener, and before the first bytes.
        socket.prependListener('data', (chunk: Buffer) => masks.apply(chunk));
        resolve(client);
      });
    });
  }
}

/** Routes an upgrade through the framework, so that its guard, routes and errors apply. */
function answerOver(server: FastifyInstance, request: IncomingMessage, socket: Duplex): void {
  // Without a listener, a client that resets its connection would end the server.
  socket.on('error', () => undefined);
  const response = new ServerResponse(request);
  response.shouldKeepAlive = false;
  // The HTTP server emits upgrades with sockets of this type only.
  response.assignSocket(socket as Socket);
  response.once('finish', () => socket.end());
  server.routing(request, response);
}

function refuseMethod(request: FastifyRequest, reply: FastifyReply): never {
  reply.header('allow', 'GET');
  throw new PlatformError('method_not_allowed', `${request.url.split('?')[0]} takes GET only`);
}

function needsUpgrade(request: FastifyRequest): PlatformError {
  const message = `${request.url.split('?')[0]} is a WebSocket: send Upgrade: websocket`;
  return new PlatformError('invalid_request', message, { details: { field: 'Upgrade' } });
}

/** Checks the handshake headers of RFC 6455 before anything is opened. */
function requireHandshake({ headers }: FastifyRequest): void {
  if (!/^(8|13)$/.test(String(headers['sec-websocket-version']))) {
    throw badField('Sec-WebSocket-Version', 'must be 13');
  }
  if (!/^[+/0-9A-Za-z]{22}==$/.test(headers['sec-websocket-key'] ?? '')) {
    throw badField('Sec-WebSocket-Key', 'must be 16 bytes in Base64');
  }
}

/**
 * The credential of a request. A page in a browser cannot set headers of a WebSocket, but it can offer subprotocols:
 * it offers `svc.channel` and `svc.bearer.<credential>`, and the server selects the first.
 */
function bearerOf(headers: IncomingHttpHeaders): string | undefined {
  if (headers.authorization !== undefined) return headers.authorization;
  const offered = headers['sec-websocket-protocol']?.split(',').map((name) => name.trim()) ?? [];
  const credential = offered.find((name) => name.startsWith(BEARER_PROTOCOL));
  return credential === undefined ? undefined : `Bearer ${credential.slice(BEARER_PROTOCOL.length)}`;
}

/**
 * The session cookie of a page of this server. Browsers send cookies with the WebSocket of any page, and pages cannot
 * add a header. So `Origin` must be this server itself; pages that are allowed to call with a key do not suffice.
 */
function sessionOfPage(request: FastifyRequest): string | undefined {
  const session = sessionOf(request);
  const { origin, host = '' } = request.headers;
  if (session === undefined || origin === `http://${host}` || origin === `https://${host}`) return session;
  const message = 'A session opens channels from pages of this server alone; others use an API key';
  throw new PlatformError('forbidden', message, { details: { header: 'origin' } });
}

/** Selects the subprotocol; never the one with the credential. */
function chooseProtocol(offered: ReadonlySet<string>): string | false {
  return offered.has(PROTOCOL) ? PROTOCOL : false;
}
