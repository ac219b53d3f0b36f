import { createSocket, type Socket as DatagramSocket } from 'node:dgram';
import { once } from 'node:events';
import { createServer, isIPv6, type AddressInfo, type Server, type Socket } from 'node:net';
import { isErrno } from '@svc/contract/errno';
import { untilListening } from '@svc/contract/node-listen';
import { clientOf } from '../policy/client-address.ts';
import type { DnsForwarder } from './dns-forwarder.ts';
import { LengthFrames, frame } from './length-frames.ts';
import { QueryRateLimit } from './query-rate-limit.ts';

export interface DnsListeners extends AsyncDisposable {
  /** One port for UDP and TCP. */
  readonly port: number;
  /** Closes the connections of a removed sandbox. */
  forget(client: string): void;
}

export interface ListenerHooks {
  /** Called with each query. */
  readonly onQuestion?: () => void;
  /** The scope of a client's sandbox; unless given, each client has its own. */
  readonly scopeOf?: (client: string) => string;
}

/** Queries are much shorter; a longer message closes the connection. */
const MAX_QUERY_BYTES = 4096;
const MAX_CONNECTIONS = 1024;
const MAX_CONNECTIONS_PER_CLIENT = 16;
/** Limit for all clients of one scope together, so that one organization does not use them all. */
const MAX_CONNECTIONS_PER_SCOPE = 64;
const IDLE_TIMEOUT_MS = 10_000;
/** Limit of unsent answers: a client over TCP that does not read them is disconnected. */
const MAX_UNREAD_BYTES = 256 * 1024;
const PORT_ATTEMPTS = 20;

/** Listens on a port that is free on each of the addresses, over UDP and TCP. */
export async function listenForDns(
  forwarder: DnsForwarder,
  addresses: readonly string[],
  { onQuestion = () => undefined, scopeOf = (client) => client }: ListenerHooks = {},
): Promise<DnsListeners> {
  for (let attempt = 1; ; attempt += 1) {
    await using opened = new AsyncDisposableStack();
    const parts = {
      forwarder,
      rates: new QueryRateLimit(scopeOf),
      onQuestion,
      connections: new TcpClients(scopeOf),
    };
    try {
      let port = 0;
      for (const address of addresses) {
        const server = serveTcp(parts);
        const datagrams = serveUdp(parts, isIPv6(address) ? 'udp6' : 'udp4');
        opened.defer(() => closeAll(server, datagrams, parts.connections));
        server.listen({ host: address, port });
        await untilListening(server);
        // `listen` on a host and port gives an AddressInfo.
        ({ port } = server.address() as AddressInfo);
        datagrams.bind(port, address);
        await once(datagrams, 'listening');
      }
      const kept = opened.move();
      const forget = (client: string) => parts.connections.forget(client);
      return { port, forget, [Symbol.asyncDispose]: () => kept.disposeAsync() };
    } catch (error) {
      // The port of the TCP listener may be taken for UDP.
      if (attempt === PORT_ATTEMPTS || !isErrno(error, 'EADDRINUSE')) throw error;
    }
  }
}

interface ListenerParts {
  readonly forwarder: DnsForwarder;
  readonly rates: QueryRateLimit;
  readonly onQuestion: () => void;
  readonly connections: TcpClients;
}

function serveUdp({ forwarder, rates, onQuestion }: ListenerParts, type: 'udp4' | 'udp6'): DatagramSocket {
  const socket = createSocket(type);
  // Send errors; without a listener they would end the process.
  socket.on('error', () => undefined);
  socket.on('message', (message, sender) => {
    if (message.length > MAX_QUERY_BYTES || !rates.tryTake(clientOf(sender.address))) return;
    onQuestion();
    void forwarder.answer(message, clientOf(sender.address), 'udp').then((answer) => {
      // The client has left; the error does not concern other clients.
      if (answer !== null && isOpen(socket))
        socket.send(answer, sender.port, sender.address, () => undefined);
    });
  });
  return socket;
}

function serveTcp(parts: ListenerParts): Server {
  const server = createServer((socket) => {
    const client = clientOf(socket.remoteAddress ?? '');
    if (client === '' || !parts.connections.admit(client, socket)) socket.destroy();
    else serveConnection(socket, client, parts);
  });
  server.maxConnections = MAX_CONNECTIONS;
  return server;
}

function serveConnection(
  socket: Socket,
  client: string,
  { forwarder, rates, onQuestion }: ListenerParts,
): void {
  const frames = new LengthFrames(MAX_QUERY_BYTES);
  socket.setTimeout(IDLE_TIMEOUT_MS, () => socket.destroy());
  // Reset by the client; `close` follows.
  socket.on('error', () => undefined);
  const ask = async (messages: readonly Buffer[]) => {
    for (const message of messages) {
      await rates.waitForToken(client);
      if (socket.destroyed) return;
      onQuestion();
      void forwarder.answer(message, client, 'tcp').then((answer) => {
        if (answer === null || !socket.writable) return;
        socket.write(frame(answer));
        if (socket.writableLength > MAX_UNREAD_BYTES) socket.destroy();
      });
    }
    socket.resume();
  };
  socket.on('data', (chunk) => {
    const messages = frames.push(chunk);
    if (messages === null) {
      socket.destroy();
      return;
    }
    // Back-pressure: no more queries are read from this connection until these have passed the rate limit.
    socket.pause();
    void ask(messages);
  });
}

async function closeAll(server: Server, datagrams: DatagramSocket, connections: TcpClients): Promise<void> {
  if (isOpen(datagrams)) datagrams.close();
  connections.endAll();
  if (!server.listening) return;
  await new Promise<void>((resolve) => {
    server.close(() => resolve());
  });
}

function isOpen(socket: DatagramSocket): boolean {
  try {
    socket.address();
    return true;
  } catch {
    // Not bound yet, or closed: Node reports it only by throwing.
    return false;
  }
}

/** Counts the open connections of sandboxes, with a limit for each and for all of a scope. */
class TcpClients {
  readonly #scopeOf: (client: string) => string;
  readonly #open = new Map<Socket, { readonly client: string; readonly scope: string }>();

  constructor(scopeOf: (client: string) => string) {
    this.#scopeOf = scopeOf;
  }

  /** False when the client, or its scope, is at its limit. */
  admit(client: string, socket: Socket): boolean {
    const scope = this.#scopeOf(client);
    const ofScope = [...this.#open.values()].filter((other) => other.scope === scope);
    const ofClient = ofScope.filter((other) => other.client === client);
    if (ofScope.length >= MAX_CONNECTIONS_PER_SCOPE || ofClient.length >= MAX_CONNECTIONS_PER_CLIENT)
      return false;
    this.#open.set(socket, { client, scope });
    socket.on('close', () => this.#open.delete(socket));
    return true;
  }

  forget(client: string): void {
    for (const [socket, other] of this.#open) if (other.client === client) socket.destroy();
  }

  endAll(): void {
    for (const socket of this.#open.keys()) socket.destroy();
  }
}
