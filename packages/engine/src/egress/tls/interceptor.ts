import { connect as connectTcp, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { TLSSocket } from 'node:tls';
import type { Divert, HeldOfSandbox } from '../http/exchange.ts';
import { BODIES, HEADS, HeldBytes, WINDOWS } from '../http/held-bytes.ts';
import { relayHttp1 } from '../http/http1-relay.ts';
import { relayHttp2 } from '../http/http2-relay.ts';
import { hostOf } from '../proxy/authority.ts';
import { reset } from '../proxy/end-together.ts';
import type { ReadableConnection, RefusalReason } from '../proxy/sandbox-egress.ts';
import type { Violation } from '../secrets/blocked-request.ts';
import type { Placeholders } from '../secrets/placeholders.ts';
import { placeholdersOf, RequestFilter } from '../secrets/request-filter.ts';
import type { SecretSettings } from '../secrets/secret-settings.ts';
import type { LeafCertificates } from './leaf-certificates.ts';
import { openServerSocket, type ServerSocket } from './server-socket.ts';
import type { UpstreamTrust } from './upstream-trust.ts';

export interface InterceptorOptions {
  readonly leaves: LeafCertificates;
  readonly trust: UpstreamTrust;
  readonly secrets: SecretSettings;
  readonly onRefusal: (connection: ReadableConnection, name: string | null, reason: RefusalReason) => void;
  readonly onViolation: (connection: ReadableConnection, violation: Violation) => void;
}

/** State of a connection once both sides are open. */
interface Agreed {
  readonly host: string;
  readonly isProven: boolean;
  readonly isHttp2: boolean;
  readonly divert: Divert | null;
}

/** Protocols that we can read. A client that offers only others, or none, may still speak HTTP/1.1. */
const PROTOCOLS: ReadonlySet<string> = new Set(['h2', 'http/1.1']);
const CONNECT_MS = 30_000;
const HANDSHAKE_MS = 15_000;

/**
 * Intercepts TLS between a sandbox and a server, so that each request can be read. It connects to the server first: the client gets the
 * protocol that the server chose, and a server that fails verification never gets a request.
 */
export class Interceptor {
  readonly #options: InterceptorOptions;
  readonly #held: HeldOfSandbox = {
    bodies: new HeldBytes(BODIES),
    heads: new HeldBytes(HEADS),
    windows: new HeldBytes(WINDOWS),
  };
  /** Shared by all connections: compiling the placeholders takes time. */
  readonly #placeholders: Placeholders;

  constructor(options: InterceptorOptions) {
    this.#options = options;
    this.#placeholders = placeholdersOf(options.secrets);
  }

  intercept(connection: ReadableConnection): void {
    const { client, flight } = connection;
    const work = flight.kind === 'tls' ? this.#openTls(connection) : this.#openPlain(connection);
    work.catch((error: unknown) => {
      const reason = error instanceof NotVerified ? 'upstream_not_verified' : 'upstream_unreachable';
      this.#options.onRefusal(connection, nameOf(connection), reason);
      reset(client);
    });
  }

  async #openTls(connection: ReadableConnection): Promise<void> {
    const { client, destination, flight } = connection;
    if (flight.kind !== 'tls') return;
    const offered = flight.hello.protocols;
    const protocols = offered.filter((protocol) => PROTOCOLS.has(protocol));
    if (offered.length > 0 && protocols.length === 0) return this.#refuse(connection, 'not_readable');
    // Without a name the certificate must be for the address.
    const host = flight.hello.serverName ?? destination.address;
    const server = await this.#connectTls(connection, host, protocols);
    const { socket: upstream, isProven, divert } = server;
    if (client.destroyed) return void upstream.destroy();
    const agreed =
      upstream.alpnProtocol === false || upstream.alpnProtocol === null ? [] : [upstream.alpnProtocol];
    const inner = new TLSSocket(client, {
      isServer: true,
      secureContext: this.#options.leaves.contextFor(host),
      ...(agreed.length > 0 ? { ALPNProtocols: agreed } : {}),
    });
    upstream.once('close', () => {
      if (!client.destroyed && !inner.destroyed && !isSecure) reset(client);
    });
    let isSecure = false;
    const deadline = setTimeout(() => reset(client), HANDSHAKE_MS);
    inner.on('error', () => client.destroy());
    inner.once('close', () => clearTimeout(deadline));
    client.once('close', () => upstream.destroy());
    inner.once('secure', () => {
      isSecure = true;
      clearTimeout(deadline);
      // Node clears this timeout only on sockets of its own servers, and an HTTP/2 session waits for it.
      Object.assign(inner, { secureConnecting: false });
      this.#relay(connection, inner, upstream, { host, isProven, isHttp2: agreed[0] === 'h2', divert });
    });
  }

  async #openPlain(connection: ReadableConnection): Promise<void> {
    const host = nameOf(connection);
    if (host === null) return this.#refuse(connection, 'not_one_host');
    const upstream = await connected(connection);
    this.#relay(connection, connection.client, upstream, {
      host,
      isProven: false,
      isHttp2: false,
      divert: null,
    });
  }

  #relay(
    connection: ReadableConnection,
    client: Duplex,
    upstream: Duplex,
    { host, isProven, isHttp2, divert }: Agreed,
  ): void {
    const { destination, rules } = connection;
    const identity = { host, isPinned: rules.isPinned(host, destination.address), isProven };
    const relay = isHttp2 ? relayHttp2 : relayHttp1;
    relay({
      client,
      upstream,
      divert,
      host,
      port: destination.port,
      filter: new RequestFilter(this.#options.secrets, identity, this.#placeholders),
      held: this.#held,
      onForeignHost: (authority) => this.#options.onRefusal(connection, hostOf(authority), 'not_one_host'),
      onViolation: (violation) => this.#options.onViolation(connection, violation),
    });
  }

  /** Resolves once the server's certificate was verified. */
  async #connectTls(
    connection: ReadableConnection,
    host: string,
    protocols: readonly string[],
  ): Promise<ServerSocket & { readonly isProven: boolean }> {
    const { context, mustVerify } = this.#options.trust.trustFor(host);
    const { destination, client } = connection;
    const server = openServerSocket({ destination, host, context, protocols });
    const { socket } = server;
    const give = () => socket.destroy();
    client.once('close', give);
    await settled(socket, 'connect', CONNECT_MS);
    client.off('close', give);
    await settled(socket, 'secureConnect', HANDSHAKE_MS);
    // Includes the host: `authorizationError` is also set when the certificate is for another host.
    if (mustVerify && !socket.authorized) {
      socket.destroy();
      throw new NotVerified(String(socket.authorizationError));
    }
    return { ...server, isProven: socket.authorized };
  }

  #refuse(connection: ReadableConnection, reason: RefusalReason): void {
    this.#options.onRefusal(connection, nameOf(connection), reason);
    reset(connection.client);
  }
}

class NotVerified extends Error {}

function nameOf({ flight }: ReadableConnection): string | null {
  return flight.kind === 'tls' ? flight.hello.serverName : hostOf(flight.host ?? '');
}

/** Connects to the address that the sandbox dialled; the name is not resolved again. */
async function connected({ destination: { address, port }, client }: ReadableConnection): Promise<Socket> {
  const socket = connectTcp({ host: address, port, noDelay: true, keepAlive: true });
  const give = () => socket.destroy();
  client.once('close', give);
  await settled(socket, 'connect', CONNECT_MS);
  client.off('close', give);
  return socket;
}

function settled(socket: Socket, event: 'connect' | 'secureConnect', timeoutMs: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const deadline = setTimeout(() => socket.destroy(new Error('Took too long')), timeoutMs);
    socket.once(event, () => resolve());
    socket.on('error', reject);
    socket.once('close', () => {
      clearTimeout(deadline);
      reject(new Error('Closed'));
    });
    socket.once(event, () => clearTimeout(deadline));
  });
}
