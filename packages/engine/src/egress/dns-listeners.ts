import { createSocket, type Socket as DatagramSocket } from 'node:dgram';
import { once } from 'node:events';
import { createServer, isIPv6, type AddressInfo, type Server, type Socket } from 'node:net';
import { isErrno } from '@svc/contract/errno';
import { untilListening } from '@svc/contract/node-listen';
import { clientOf } from '../policy/client-address.ts';
import type { DnsForwarder } from './dns-forwarder.ts';
import { DnsFrames, frame } from './dns-frames.ts';
import { setTimeout as delay } from 'node:timers/promises';

/** As the packet filter counts datagrams. */
const INTERVAL_MS = 1000 / 200;
const BURST = 400;
const MAX_CLIENTS = 4096;

export interface DnsListeners extends AsyncDisposable {
  /** The same for UDP and TCP. */
  readonly port: number;
}

/** No question comes near this; a longer message is not worth reading. */
const MAX_QUERY_BYTES = 4096;
const MAX_CONNECTIONS = 256;
const MAX_CONNECTIONS_PER_CLIENT = 16;
const IDLE_TIMEOUT_MS = 10_000;
/** A client that asks over TCP and does not read the answers loses its connection here. */
const MAX_UNREAD_BYTES = 256 * 1024;
const PORT_ATTEMPTS = 20;

/** Listens on a port that is free on each of the addresses, over UDP and TCP. */
export async function listenForDns(
  forwarder: DnsForwarder,
  addresses: readonly string[],
  onQuery: () => void = () => undefined,
): Promise<DnsListeners> {
  for (let attempt = 1; ; attempt += 1) {
    await using opened = new AsyncDisposableStack();
    const rate = new QuestionRate();
    try {
      let port = 0;
      for (const address of addresses) {
        const sockets = new Set<Socket>();
        const server = serveTcp(forwarder, rate, onQuery, sockets);
        const datagrams = serveUdp(forwarder, onQuery, isIPv6(address) ? 'udp6' : 'udp4');
        opened.defer(() => closeAll(server, datagrams, sockets));
        server.listen({ host: address, port });
        await untilListening(server);
        // `listen` on a host and port gives an AddressInfo.
        ({ port } = server.address() as AddressInfo);
        datagrams.bind(port, address);
        await once(datagrams, 'listening');
      }
      const kept = opened.move();
      return { port, [Symbol.asyncDispose]: () => kept.disposeAsync() };
    } catch (error) {
      // A port that is free for TCP can be taken for UDP.
      if (attempt === PORT_ATTEMPTS || !isErrno(error, 'EADDRINUSE')) throw error;
    }
  }
}

function serveUdp(forwarder: DnsForwarder, onQuery: () => void, type: 'udp4' | 'udp6'): DatagramSocket {
  const socket = createSocket(type);
  // An answer that could not be sent; without a listener it would end the process.
  socket.on('error', () => undefined);
  socket.on('message', (message, sender) => {
    if (message.length > MAX_QUERY_BYTES) return;
    onQuery();
    void forwarder.answer(message, clientOf(sender.address), 'udp').then((answer) => {
      // A client that is gone by now is no concern of the others.
      if (answer !== null && isOpen(socket))
        socket.send(answer, sender.port, sender.address, () => undefined);
    });
  });
  return socket;
}

function serveTcp(
  forwarder: DnsForwarder,
  rate: QuestionRate,
  onQuery: () => void,
  sockets: Set<Socket>,
): Server {
  const server = createServer((socket) => {
    const client = clientOf(socket.remoteAddress ?? '');
    const others = [...sockets].filter((other) => clientOf(other.remoteAddress ?? '') === client);
    if (client === '' || others.length >= MAX_CONNECTIONS_PER_CLIENT) {
      socket.destroy();
      return;
    }
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
    serveConnection(socket, client, { forwarder, rate, onQuery });
  });
  server.maxConnections = MAX_CONNECTIONS;
  return server;
}

function serveConnection(
  socket: Socket,
  client: string,
  { forwarder, rate, onQuery }: { forwarder: DnsForwarder; rate: QuestionRate; onQuery: () => void },
): void {
  const frames = new DnsFrames(MAX_QUERY_BYTES);
  socket.setTimeout(IDLE_TIMEOUT_MS, () => socket.destroy());
  // Reset by the client; `close` follows.
  socket.on('error', () => undefined);
  const ask = async (messages: readonly Buffer[]) => {
    for (const message of messages) {
      await rate.turn(client);
      if (socket.destroyed) return;
      onQuery();
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
    // Nothing more is read before these have had their turn: whoever asks too much is held up by its own connection.
    socket.pause();
    void ask(messages);
  });
}

async function closeAll(
  server: Server,
  datagrams: DatagramSocket,
  sockets: ReadonlySet<Socket>,
): Promise<void> {
  if (isOpen(datagrams)) datagrams.close();
  for (const socket of sockets) socket.destroy();
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
    // Not bound yet, or closed: the only way Node tells.
    return false;
  }
}

/**
 * Lets each client ask 200 questions a second over TCP, after 400 at once: many questions fit into one packet, so the packet filter
 * cannot count them. A client that asks more waits; the others do not.
 */
class QuestionRate {
  /** When each client has used up what it was given so far. */
  readonly #spentUntil = new Map<string, number>();

  /** Returns when the client may ask its next question. */
  async turn(client: string): Promise<void> {
    const now = performance.now();
    const spent = Math.max(this.#spentUntil.get(client) ?? 0, now - BURST * INTERVAL_MS) + INTERVAL_MS;
    this.#spentUntil.set(client, spent);
    if (this.#spentUntil.size > MAX_CLIENTS) this.#forget(now);
    if (spent > now) await delay(spent - now, undefined, { ref: false });
  }

  /** A client that has its whole burst back is like one that was never seen. */
  #forget(now: number): void {
    for (const [client, spent] of this.#spentUntil)
      if (spent < now - BURST * INTERVAL_MS) this.#spentUntil.delete(client);
  }
}
