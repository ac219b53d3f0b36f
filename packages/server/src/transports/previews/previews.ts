import type { IncomingMessage, ServerResponse as Response } from 'node:http';
import { Duplex } from 'node:stream';
import { PlatformError } from '@svc/contract';
import type { ChannelClient, TcpStream } from '@svc/contract/channel';
import type { Logger } from 'pino';
import type { Orchestrator } from '../../orchestrator/orchestrator.ts';
import { ServerResponse } from '@svc/contract/node-http';
import type { Database } from '../../store/database.ts';
import type { SandboxRecord } from '../../store/sandboxes.ts';
import type { FairLimit } from '../../access/fair-limit.ts';
import { claimConnection } from '../http/connection-limit.ts';
import { ChannelSlots, type ChannelLimits } from '../channel/channel-slots.ts';
import { admitRequest, isStillOpen, type Admission, type AdmitById } from './admit-request.ts';
import { forwardRequest } from './forward-request.ts';
import { forwardUpgrade } from './forward-upgrade.ts';
import { notListening, notRunning, sendAnswer, TOO_MANY, type PreviewAnswer } from './preview-answer.ts';
import {
  readPreviewHost,
  TOKEN_NAME,
  type PreviewAddresses,
  type PreviewHost,
} from '../../handlers/previews/preview-place.ts';
import { withoutToken } from './preview-token.ts';

const OPEN_MS = 10_000;
const LIMITS: ChannelLimits = { perSandbox: 64, perOrganization: 1024 };
const RECHECK_MS = 30_000;
const LOOPBACK = '127.0.0.1';

export interface PreviewParts {
  readonly place: PreviewAddresses;
  readonly database: Database;
  readonly orchestrator: Orchestrator;
  readonly logger: Logger;
  /** Limits open connections, by organization. */
  readonly streams: FairLimit;
  /** Interval at which the permission of an open WebSocket is checked; 30 s by default. */
  readonly recheckMs?: number | undefined;
  /** For labels that are no slugs; absent: there are none. */
  readonly admitById?: AdmitById;
}

/**
 * Serves ports of sandboxes to browsers, each on its own host. A request to such a host is forwarded to the sandbox
 * or refused here; it never reaches a route of this server. Only its Host decides that.
 */
export class Previews {
  readonly #parts: PreviewParts;
  readonly #slots = new ChannelSlots(LIMITS);
  readonly #upgraded = new Set<Duplex>();

  constructor(parts: PreviewParts) {
    this.#parts = parts;
  }

  takes(request: IncomingMessage): boolean {
    return this.#hostOf(request) !== undefined;
  }

  async answer(request: IncomingMessage, response: Response): Promise<void> {
    await this.#serve(request, response, async (admission, sandbox, host) => {
      const { scheme } = this.#parts.place;
      const isLink = admission.by === 'token' && admission.isFromAddress;
      const cookie = isLink ? this.#cookieOf(admission.token) : null;
      if (cookie !== null && isNavigation(request)) return redirect(request, response, cookie);
      const outcome = await this.#connect(sandbox, host);
      if ('status' in outcome) return sendAnswer(request, response, outcome);
      await forwardRequest({ request, response, socket: outcome, port: host.port, scheme, cookie });
    });
  }

  async upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
    // Without a listener, a client that resets its connection would end the server.
    socket.on('error', () => undefined);
    const response = new ServerResponse(request);
    response.shouldKeepAlive = false;
    // The HTTP server emits upgrades with sockets of this type only.
    response.assignSocket(socket as Parameters<Response['assignSocket']>[0]);
    response.once('finish', () => socket.end());
    await this.#serve(request, response, async (_admission, sandbox, host) => {
      const outcome = await this.#connect(sandbox, host);
      if ('status' in outcome) return sendAnswer(request, response, outcome);
      this.#upgraded.add(socket);
      try {
        const { scheme } = this.#parts.place;
        await forwardUpgrade({
          request,
          response,
          socket: outcome,
          port: host.port,
          scheme,
          client: socket,
          head,
        });
      } finally {
        this.#upgraded.delete(socket);
      }
    });
  }

  /** Closes WebSockets; other requests are drained by the server. */
  close(): void {
    for (const socket of this.#upgraded) socket.destroy();
  }

  async #serve(
    request: IncomingMessage,
    response: Response,
    work: (admission: Admission, sandbox: SandboxRecord, host: PreviewHost) => Promise<void>,
  ): Promise<void> {
    const { logger } = this.#parts;
    try {
      const named = this.#hostOf(request);
      if (named === undefined) throw new Error('only hosts of previews get here');
      const byId = await this.#parts.admitById?.(named, request.headers);
      const host = byId !== undefined && 'slug' in byId ? { ...named, slug: byId.slug } : named;
      const admission =
        byId === undefined || 'slug' in byId ? await admitRequest(this.#parts, host, request) : byId;
      if ('status' in admission) return sendAnswer(request, response, admission);
      const { sandbox } = admission;
      const release = this.#take(sandbox, request);
      if (release === undefined) return sendAnswer(request, response, TOO_MANY);
      const timer = this.#recheck(admission, host, request);
      try {
        await work(admission, sandbox, host);
      } finally {
        clearInterval(timer);
        release();
      }
    } catch (error) {
      logger.error({ err: error }, 'a preview failed');
      sendAnswer(request, response, {
        status: 500,
        code: 'internal',
        title: 'The server met a bug',
        message: 'Its log says more.',
      });
    }
  }

  /** Ends WebSockets, and long answers such as server-sent events, when their admission is no longer valid. */
  #recheck(admission: Admission, host: PreviewHost, { socket, headers }: IncomingMessage): NodeJS.Timeout {
    return setInterval(() => {
      this.#isStillOpen(admission, host, headers).then(
        (isOpen) => isOpen || socket.destroy(),
        // An unavailable store is no reason to disconnect the client.
        () => undefined,
      );
    }, this.#parts.recheckMs ?? RECHECK_MS);
  }

  async #isStillOpen(
    admission: Admission,
    host: PreviewHost,
    headers: IncomingMessage['headers'],
  ): Promise<boolean> {
    if (admission.by !== 'id') return await isStillOpen(this.#parts.database, host, admission);
    const now = await this.#parts.admitById?.(host, headers);
    return now !== undefined && 'by' in now;
  }

  /** Counts the stream for the organization of the sandbox, not for the visitor. */
  #take({ id, organizationId }: SandboxRecord, { socket }: IncomingMessage): (() => void) | undefined {
    using undo = new DisposableStack();
    try {
      const leave = this.#parts.streams.enter(organizationId);
      undo.defer(leave);
      const release = this.#slots.take(id, organizationId);
      undo.move();
      claimConnection(socket, organizationId);
      return () => {
        release();
        leave();
      };
    } catch (error) {
      if (!PlatformError.is(error, 'rate_limited') && !PlatformError.is(error, 'unavailable')) throw error;
      return undefined;
    }
  }

  async #connect(sandbox: SandboxRecord, { port }: PreviewHost): Promise<Duplex | PreviewAnswer> {
    const signal = AbortSignal.timeout(OPEN_MS);
    let channel: ChannelClient;
    try {
      channel = await this.#parts.orchestrator.openChannel(sandbox.id, signal);
    } catch (error) {
      this.#parts.logger.debug({ sandboxId: sandbox.id, err: error }, 'a preview found no sandbox');
      return notRunning(sandbox.name, sandbox.observed === 'running' ? 'not answering' : sandbox.observed);
    }
    try {
      return channelSocket(channel, await channel.connectTcp(LOOPBACK, port, { signal }));
    } catch (error) {
      channel.close();
      this.#parts.logger.debug({ sandboxId: sandbox.id, port, err: error }, 'a preview found no service');
      return notListening(sandbox.name, port);
    }
  }

  #hostOf(request: IncomingMessage): PreviewHost | undefined {
    return readPreviewHost(this.#parts.place, request.headers.host);
  }

  #cookieOf(token: string): string {
    const secure = this.#parts.place.scheme === 'https' ? '; Secure' : '';
    return `${TOKEN_NAME}=${token}; Path=/; HttpOnly; SameSite=Lax${secure}`;
  }
}

/** Whether a person opened a link, as opposed to a program. */
function isNavigation({ method, headers }: IncomingMessage): boolean {
  const isPage = /\btext\/html\b/.test(headers.accept ?? '');
  return (method === 'GET' || method === 'HEAD') && isPage;
}

/** Redirects to the URL without the token, which keeps it out of the address bar, the history and the Referer. */
function redirect(request: IncomingMessage, response: Response, cookie: string): void {
  // A leading // would be parsed as another host.
  const location = withoutToken(request.url ?? '/').replace(/^\/{2,}/, '/');
  response.writeHead(302, {
    location,
    'set-cookie': cookie,
    'cache-control': 'no-store',
    'referrer-policy': 'no-referrer',
    'content-length': 0,
  });
  response.end();
}

/**
 * A TCP connection inside a sandbox as a Node stream. It has its own channel, so that a slow reader does not block
 * other connections, and both end together.
 */
function channelSocket(channel: ChannelClient, connection: TcpStream): Duplex {
  const reader = connection.readable[Symbol.asyncIterator]();
  const socket = new Duplex({
    allowHalfOpen: true,
    read: () => {
      reader.next().then(
        ({ done, value }) => socket.push(done === true ? null : value),
        (error: unknown) => socket.destroy(error as Error),
      );
    },
    write: (chunk: Uint8Array, _encoding, done) => void settle(connection.write(chunk), done),
    final: (done) => void settle(connection.end(), done),
    destroy: (error, done) => {
      connection.close();
      channel.close();
      done(error);
    },
  });
  return socket;
}

async function settle(work: Promise<void>, done: (error?: Error | null) => void): Promise<void> {
  const error = await work.then(
    () => null,
    (reason: unknown) => reason as Error,
  );
  done(error);
}
