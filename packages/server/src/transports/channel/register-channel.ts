import type { IncomingMessage, IncomingHttpHeaders } from 'node:http';
import { isIP, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { PlatformError } from '@svc/contract';
import { pathsOf } from '@svc/contract/rest';
import { duplexTransport } from '@svc/engine/client';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Logger } from 'pino';
import { type WebSocket, WebSocketServer } from 'ws';
import type { CallShares } from '../../access/call-shares.ts';
import type { Authority } from '../../access/authorize-rest.ts';
import { badField } from '../../dispatch/rest-dispatch.ts';
import { ChannelAccess, type ChannelAccessParts } from './channel-access.ts';
import { ChannelSlots, type ChannelLimits } from './channel-slots.ts';
import { EventQueue } from './event-queue.ts';
import { MaskRemover } from './mask-remover.ts';
import { CLOSE, relay, type ChannelEnd } from './relay.ts';
import type { RateLimiter } from '../http/rate-limiter.ts';
import { activeSpan } from '../../tracing/span.ts';
import { ServerResponse } from '@svc/contract/node-http';
import { REST_PREFIX, sendRestFailure } from '../http/rest-failure.ts';
import { sessionOf } from '../rest/session-cookie.ts';
import type { SandboxRecord } from '../../store/sandboxes.ts';
import { explainBreak } from '../../orchestrator/explain-break.ts';
import { OUT_OF_MEMORY } from '../../orchestrator/not-running.ts';
import { createOpenChannel, type OpenChannel } from '../../sandboxes/open-channel.ts';

/** The protocol of the channel, for clients that must name one. */
const PROTOCOL = 'svc.channel';
const BEARER_PROTOCOL = 'svc.bearer.';

/** One frame with its length word: clients send a frame per message. */
const MAX_MESSAGE_BYTES = 4 + 4 * 1024 * 1024;
const OPEN_MS = 10_000;
const CLOSE_MS = 2000;
const METHODS_REFUSED = ['HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'];

export interface ChannelSettings {
  readonly limits: ChannelLimits;
  /** How often a client is pinged, and asked for its credential again. */
  readonly keepAliveMs: number;
}

export const DEFAULT_CHANNEL_SETTINGS: ChannelSettings = {
  limits: { perSandbox: 128, perOrganization: 2048 },
  keepAliveMs: 30_000,
};

export interface ChannelParts extends ChannelAccessParts {
  readonly rateLimiter: RateLimiter | null;
  /** Of connections that are held open. */
  readonly streams: CallShares;
  readonly settings: ChannelSettings;
  readonly logger: Logger;
}

/** A request that asked to become a WebSocket. */
interface Upgrade {
  readonly socket: Duplex;
  readonly head: Buffer;
}

/**
 * The command channel of a sandbox: a WebSocket at `/v1/sandboxes/{id}/agent`, and once more below `/v1/orgs/{slug}`.
 * Until it is open, everything that goes wrong is an HTTP answer like any other of the control plane.
 */
export function registerChannel(server: FastifyInstance, parts: ChannelParts): void {
  const route = new ChannelRoute(parts);
  server.server.on('upgrade', (request, socket, head) => {
    route.upgrades.set(request, { socket, head });
    answerOver(server, request, socket);
  });
  void server.register(
    async (scope) => {
      scope.setErrorHandler((error, request, reply) => sendRestFailure(error, request, reply, parts.logger));
      for (const { path } of pathsOf({ path: '/sandboxes/{sandbox_id}/agent', audience: 'both' })) {
        const url = path.replaceAll(/\{(\w+)\}/g, ':$1');
        scope.get(url, { exposeHeadRoute: false }, (request, reply) => route.open(request, reply));
        scope.route({ method: METHODS_REFUSED, url, handler: refuseMethod });
      }
      await Promise.resolve();
    },
    { prefix: REST_PREFIX },
  );
  server.addHook('preClose', () => route.close());
}

/** Lets the framework answer on the socket of an upgrade, so that its guard, routes and errors hold there too. */
function answerOver(server: FastifyInstance, request: IncomingMessage, socket: Duplex): void {
  // Without a listener, a client that resets its connection would end the server.
  socket.on('error', () => undefined);
  const response = new ServerResponse(request);
  response.shouldKeepAlive = false;
  // Upgrades come from the HTTP server, which makes sockets of no other kind.
  response.assignSocket(socket as Socket);
  response.once('finish', () => socket.end());
  server.routing(request, response);
}

class ChannelRoute {
  readonly upgrades = new WeakMap<IncomingMessage, Upgrade>();
  readonly #parts: ChannelParts;
  readonly #access: ChannelAccess;
  readonly #slots: ChannelSlots;
  readonly #events: EventQueue;
  readonly #openChannel: OpenChannel;
  readonly #sockets = new WebSocketServer({
    noServer: true,
    clientTracking: true,
    maxPayload: MAX_MESSAGE_BYTES,
    perMessageDeflate: false,
    handleProtocols: chooseProtocol,
  });

  constructor(parts: ChannelParts) {
    this.#parts = parts;
    this.#access = new ChannelAccess(parts);
    this.#slots = new ChannelSlots(parts.settings.limits);
    this.#events = new EventQueue(parts.database);
    this.#openChannel = createOpenChannel(parts.orchestrator, parts.database);
  }

  /** Sandboxes run on, but what was started over a channel ends with it. */
  async close(): Promise<void> {
    const { clients } = this.#sockets;
    for (const client of clients) client.close(CLOSE.goingAway, 'the server is shutting down');
    const cutOff = setTimeout(() => clients.forEach((client) => client.terminate()), CLOSE_MS);
    await new Promise<void>((resolve) => this.#sockets.close(() => resolve()));
    clearTimeout(cutOff);
    await this.#events.close();
  }

  async open(request: FastifyRequest, reply: FastifyReply): Promise<void> {
    const upgrade = this.upgrades.get(request.raw);
    const { slug, sandbox_id: id = '' } = request.params as Record<string, string>;
    const authorization = bearerOf(request.headers) ?? sessionOfPage(request);
    const authority = await this.#access.admit(slug, authorization);
    this.#parts.rateLimiter?.take(authority.organization.slug, reply);
    if (upgrade === undefined) throw needsUpgrade(request);
    requireHandshake(request);
    const sandbox = await this.#access.find(authority.organization, id, request.query);
    const owner = authority.isOperator ? null : authority.organization.slug;
    const leave = this.#parts.streams.enter(owner);
    // Also when what follows is refused: the share is given back with the end of the connection.
    upgrade.socket.once('close', leave);
    const release = this.#slots.take(sandbox.id, authority.organization.id);
    try {
      const stream = await this.#openStream(sandbox, upgrade.socket);
      const client = await this.#accept(request, reply, upgrade).catch((error: unknown) => {
        stream.destroy();
        throw error;
      });
      const work = this.#relay(client, stream, { request, sandbox, authority, slug, authorization });
      void work.finally(release);
    } catch (error) {
      release();
      throw error;
    }
  }

  /** The stream to the sandbox comes first: a client that gets its WebSocket has a sandbox behind it. */
  async #openStream(sandbox: SandboxRecord, socket: Duplex): Promise<Duplex> {
    const over = new AbortController();
    const leave = () => over.abort(new Error('the client left'));
    socket.once('close', leave);
    const timer = setTimeout(() => over.abort(new Error('the sandbox did not answer in time')), OPEN_MS);
    try {
      return await this.#parts.orchestrator.openStream(sandbox.id, over.signal);
    } catch (error) {
      if (over.signal.aborted)
        throw new PlatformError('unavailable', 'the sandbox did not answer in time; try again');
      if (PlatformError.is(error, 'sandbox_not_found')) throw notRunning(sandbox);
      throw error;
    } finally {
      clearTimeout(timer);
      socket.off('close', leave);
    }
  }

  async #accept(request: FastifyRequest, reply: FastifyReply, { socket, head }: Upgrade): Promise<WebSocket> {
    reply.hijack();
    reply.raw.detachSocket(reply.raw.socket as NonNullable<typeof reply.raw.socket>);
    return await new Promise((resolve, reject) => {
      // A handshake that it does not like is refused by the library itself, which tells nobody.
      socket.once('close', () => reject(new Error('the handshake failed')));
      this.#sockets.handleUpgrade(request.raw, socket, head, (client) => {
        const masks = new MaskRemover();
        // Before the library's own listener, and before anything has come.
        socket.prependListener('data', (chunk: Buffer) => masks.apply(chunk));
        resolve(client);
      });
    });
  }

  async #relay(
    client: WebSocket,
    stream: Duplex,
    opened: {
      readonly request: FastifyRequest;
      readonly sandbox: SandboxRecord;
      readonly authority: Authority & {
        readonly organization: { readonly id: string; readonly slug: string };
      };
      readonly slug: string | undefined;
      readonly authorization: string | undefined;
    },
  ): Promise<void> {
    const { request, sandbox, authority, slug, authorization } = opened;
    const { organization, actor } = authority;
    const address = request.socket.remoteAddress ?? '';
    const span = activeSpan();
    span?.note({ 'svc.organization': authority.organization.slug, 'svc.sandbox.id': sandbox.id });
    await relay(client, duplexTransport(stream), {
      keepAliveMs: this.#parts.settings.keepAliveMs,
      explainEnd: () => explainEnd(this.#openChannel, sandbox),
      recheck: async () => {
        const now = await this.#access.admit(slug, authorization);
        // A slug may be another organization's by now.
        if (now.organization.id !== organization.id)
          throw new PlatformError('forbidden', 'not yours any more');
      },
      onExec: async (exec) => {
        // When it begins: bytes are handed on, and nobody here looks for its end.
        span?.child('exec', { attributes: { 'svc.sandbox.id': sandbox.id } }).end();
        await this.#events.append({
          organizationId: organization.id,
          type: 'exec_started',
          category: 'exec',
          actor,
          payload: { sandbox_id: sandbox.id, sandbox_name: sandbox.name, ...exec },
          requestId: request.id,
          sourceAddress: isIP(address) === 0 ? null : address,
        });
      },
    });
  }
}

function refuseMethod(request: FastifyRequest, reply: FastifyReply): never {
  reply.header('allow', 'GET');
  throw new PlatformError('method_not_allowed', `${request.url.split('?')[0]} takes GET only`);
}

function needsUpgrade(request: FastifyRequest): PlatformError {
  const message = `${request.url.split('?')[0]} is a WebSocket: send Upgrade: websocket`;
  return new PlatformError('invalid_request', message, { details: { field: 'Upgrade' } });
}

/** It was never made in the orchestrator: to callers that is a sandbox that did not start yet. */
function notRunning(sandbox: SandboxRecord): PlatformError {
  return new PlatformError('sandbox_not_running', `Sandbox '${sandbox.name}' is not running; start it first`);
}

/** Of RFC 6455. Asked for before anything is opened. */
function requireHandshake({ headers }: FastifyRequest): void {
  if (!/^(8|13)$/.test(String(headers['sec-websocket-version']))) {
    throw badField('Sec-WebSocket-Version', 'must be 13');
  }
  if (!/^[+/0-9A-Za-z]{22}==$/.test(headers['sec-websocket-key'] ?? '')) {
    throw badField('Sec-WebSocket-Key', 'must be 16 bytes in Base64');
  }
}

/**
 * The credential of a request. A page in a browser cannot set headers of a WebSocket, but it can offer protocols: it offers
 * `svc.channel` and `svc.bearer.<credential>`, and gets the first one.
 */
function bearerOf(headers: IncomingHttpHeaders): string | undefined {
  if (headers.authorization !== undefined) return headers.authorization;
  const offered = headers['sec-websocket-protocol']?.split(',').map((name) => name.trim()) ?? [];
  const credential = offered.find((name) => name.startsWith(BEARER_PROTOCOL));
  return credential === undefined ? undefined : `Bearer ${credential.slice(BEARER_PROTOCOL.length)}`;
}

/**
 * The session of a page of ours. A WebSocket carries cookies whoever's page opens it, and no header of the page's: so its `Origin`
 * must be this very server, not only one that may call it with a key.
 */
function sessionOfPage(request: FastifyRequest): string | undefined {
  const session = sessionOf(request);
  const { origin, host = '' } = request.headers;
  if (session === undefined || origin === `http://${host}` || origin === `https://${host}`) return session;
  const message = 'A session opens channels from pages of this server alone; others use an API key';
  throw new PlatformError('forbidden', message, { details: { header: 'origin' } });
}

/** Never the one that holds the credential. */
function chooseProtocol(offered: ReadonlySet<string>): string | false {
  return offered.has(PROTOCOL) ? PROTOCOL : false;
}

/** What a client is told whose channel the sandbox has ended: it may have run out of memory. */
async function explainEnd(openChannel: OpenChannel, { id, name }: SandboxRecord): Promise<ChannelEnd> {
  const why = await explainBreak((signal) => openChannel(id, signal));
  const { reason, ended } = PlatformError.is(why) ? (why.details ?? {}) : {};
  return reason === OUT_OF_MEMORY && typeof ended === 'string'
    ? { code: CLOSE.outOfMemory, message: `Sandbox '${name}' ended, ${ended}` }
    : null;
}
