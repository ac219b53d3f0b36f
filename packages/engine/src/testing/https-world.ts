import { generateKeyPairSync } from 'node:crypto';
import { once } from 'node:events';
import { request, createServer, type RequestOptions } from 'node:https';
import { createSecureServer, type Http2SecureServer } from 'node:http2';
import { createServer as createPlain, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { connect, createSecureContext as createContext, type TLSSocket } from 'node:tls';
import { writeLeaf } from '../egress/tls/certificate.ts';
import { makeAuthority, readIssuer, type AuthorityPem } from '../egress/tls/installation-authority.ts';
import { Interceptor } from '../egress/tls/interceptor.ts';
import { LeafCertificates } from '../egress/tls/leaf-certificates.ts';
import { UpstreamTrust, type UpstreamTrustOptions } from '../egress/tls/upstream-trust.ts';
import type { Violation } from '../egress/secrets/blocked-request.ts';
import type { Secret, SecretSettings } from '../egress/secrets/secret-settings.ts';
import type { Rules, SandboxEgress } from '../egress/proxy/sandbox-egress.ts';
import { rulesFor, startProxy, type TestProxy } from './proxy-loopback.ts';

export const NAMES = ['api.test', 'other.test'];
export const SECRET_VALUE = 'real-value-4711';
export const PLACEHOLDER = '$MSB_API_KEY';

export function secret(changes: Partial<Secret> = {}): Secret {
  return {
    envVar: 'API_KEY',
    placeholder: PLACEHOLDER,
    value: SECRET_VALUE,
    allowedHosts: [{ type: 'exact', value: 'api.test' }],
    injection: { headers: true, basicAuth: true, queryParams: false, body: false },
    onViolation: null,
    requireTlsIdentity: true,
    ...changes,
  };
}

export interface WorldOptions {
  readonly secrets?: readonly Secret[];
  readonly onViolation?: SecretSettings['onViolation'];
  readonly rules?: Rules;
  readonly trust?: Partial<UpstreamTrustOptions>;
  readonly egress?: Partial<SandboxEgress>;
  /** The name in the server's certificate, and whether a trusted authority signed it. */
  readonly serverNames?: string;
  readonly isServerTrusted?: boolean;
  readonly http2?: boolean;
  readonly plain?: boolean;
  readonly onRequest?: (
    incoming: IncomingMessage,
    body: Buffer,
  ) => { status?: number; headers?: Record<string, string>; body?: string | Buffer };
}

export interface AskOptions extends Omit<RequestOptions, 'headers'> {
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Buffer;
}

export interface Seen {
  readonly method: string;
  readonly url: string;
  readonly headers: readonly string[];
  readonly trailers: readonly string[];
  readonly body: string;
}

export interface World extends AsyncDisposable {
  readonly proxy: TestProxy;
  readonly serverPort: number;
  readonly server: Server | Http2SecureServer;
  /** Requests that arrived completely. */
  readonly seen: Seen[];
  /** Method and path of every request that began to arrive. */
  readonly begun: string[];
  readonly connections: ReadonlySet<Socket>;
  readonly violations: Violation[];
  readonly refusals: { readonly name: string | null; readonly reason: string }[];
  /** The authority that a sandbox trusts. */
  readonly authority: AuthorityPem;
  /** All bytes that any server received, as text. */
  readonly everything: () => string;
  connect(servername: string, protocols?: readonly string[]): Promise<TLSSocket>;
  ask(
    host: string,
    options?: AskOptions,
  ): Promise<{ status: number; body: string; headers: IncomingMessage['headers'] }>;
}

/** A server on loopback with its own authority, and a proxy that intercepts connections to it. */
export async function makeWorld(options: WorldOptions = {}): Promise<World> {
  const outside = makeAuthority();
  const seen: Seen[] = [];
  const begun: string[] = [];
  const { server, connections } = await startServer(outside, options, seen, begun);
  const serverPort = (server.address() as AddressInfo).port;
  const authority = makeAuthority();
  const violations: Violation[] = [];
  const refusals: { name: string | null; reason: string }[] = [];
  const interceptor = makeInterceptor(authority, outside, options, violations, refusals);
  const destination = { address: '127.0.0.1', port: serverPort };
  const proxy = await startProxy(destination, {
    rules: options.rules ?? rulesFor(NAMES),
    interceptedPorts: new Set([serverPort]),
    intercept: (connection) => interceptor.intercept(connection),
    ...options.egress,
  });
  const trusted = { ca: authority.certificate, host: '127.0.0.1', port: proxy.port };
  return {
    proxy,
    serverPort,
    server,
    seen,
    begun,
    connections,
    violations,
    refusals,
    authority,
    everything: () => JSON.stringify(seen),
    connect: async (servername, protocols = []) => {
      const socket = connect({
        ...trusted,
        ...(servername === '' ? {} : { servername }),
        ALPNProtocols: [...protocols],
      });
      await once(socket, 'secureConnect');
      return socket;
    },
    ask: async (host, { body, headers = {}, ...more } = {}) => {
      const common = { ...trusted, servername: host, agent: false as const };
      const outgoing = request({ ...common, ...more, headers: { host, ...headers } });
      outgoing.end(body);
      const [incoming] = (await once(outgoing, 'response')) as [IncomingMessage];
      return {
        status: incoming.statusCode ?? 0,
        headers: incoming.headers,
        body: (await buffer(incoming)).toString('latin1'),
      };
    },
    [Symbol.asyncDispose]: async () => {
      await proxy[Symbol.asyncDispose]();
      for (const socket of connections) socket.destroy();
      await new Promise((resolve) => {
        server.close(resolve);
      });
    },
  };
}

function makeInterceptor(
  authority: AuthorityPem,
  outside: AuthorityPem,
  options: WorldOptions,
  violations: Violation[],
  refusals: { name: string | null; reason: string }[],
): Interceptor {
  return new Interceptor({
    leaves: new LeafCertificates({ authority, validityHours: 24, capacity: 10 }),
    trust: new UpstreamTrust({
      verifyUpstream: true,
      scopedVerifyUpstream: [],
      upstreamCas: options.isServerTrusted === false ? [] : [outside.certificate],
      scopedUpstreamCas: [],
      ...options.trust,
    }),
    secrets: {
      entries: options.secrets ?? [],
      onViolation: options.onViolation ?? { type: 'block_and_log' },
    },
    onRefusal: (_, name, reason) => refusals.push({ name, reason }),
    onViolation: (_, violation) => violations.push(violation),
  });
}

async function startServer(outside: AuthorityPem, options: WorldOptions, seen: Seen[], begun: string[]) {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const now = Date.now();
  const issuer = readIssuer(outside);
  const leaf = (host: string) => ({
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }),
    cert: writeLeaf(host, privateKey, issuer, {
      from: new Date(now - 1000),
      until: new Date(now + 3_600_000),
    }),
  });
  const identity = {
    ...leaf(options.serverNames ?? 'api.test'),
    SNICallback: (
      name: string,
      done: (error: Error | null, context?: ReturnType<typeof createContext>) => void,
    ) => done(null, createContext(leaf(options.serverNames ?? name))),
  };
  const onRequest = async (
    incoming: IncomingMessage,
    response: {
      writeHead: (status: number, headers: Record<string, string>) => unknown;
      end: (body: string | Buffer) => unknown;
    },
  ) => {
    begun.push(`${incoming.method} ${incoming.url}`);
    const body = await buffer(incoming).catch(() => null);
    if (body === null) return;
    seen.push({
      method: incoming.method ?? '',
      url: incoming.url ?? '',
      headers: incoming.rawHeaders,
      trailers: incoming.rawTrailers,
      body: body.toString('latin1'),
    });
    const answer = options.onRequest?.(incoming, body) ?? {};
    response.writeHead(answer.status ?? 200, answer.headers ?? {});
    response.end(answer.body ?? 'fine');
  };
  const server =
    options.http2 === true
      ? createSecureServer({ ...identity, allowHTTP1: true })
      : options.plain === true
        ? createPlain()
        : createServer(identity);
  (server as Server).on('request', (incoming, response) => void onRequest(incoming, response));
  const connections = new Set<Socket>();
  server.on('connection', (socket: Socket) => connections.add(socket.on('error', () => undefined)));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return { server, connections };
}
