import { once } from 'node:events';
import { createServer, type Server, type Socket } from 'node:net';
import { pipeline } from 'node:stream/promises';
import { PlatformError, type ChannelClient, type TcpStream } from '@svc/contract';
import type { Logger } from 'pino';
import type { PortMapping } from './port-mapping.ts';
import { readHalf } from './read-half.ts';

type OpenChannel = (sandboxId: string, signal: AbortSignal) => Promise<ChannelClient>;

const CONNECT_TIMEOUT_MS = 10_000;
const LOOPBACK = '127.0.0.1';

/**
 * Leads TCP ports of this host into sandboxes.
 * - `open` of a sandbox whose ports are open changes nothing; `close` may be repeated.
 * - Each connection has a channel of its own, so that a slow one holds up no other.
 */
export class PortForwarder {
  readonly #openChannel: OpenChannel;
  readonly #logger: Logger;
  readonly #listeners = new Map<string, readonly Listener[]>();

  constructor(openChannel: OpenChannel, logger: Logger) {
    this.#openChannel = openChannel;
    this.#logger = logger;
  }

  /** @throws PlatformError `start_failed` when a port is taken; then none of them is open. */
  async open(sandboxId: string, mappings: readonly PortMapping[]): Promise<void> {
    if (mappings.length === 0 || this.#listeners.has(sandboxId)) return;
    const opened: Listener[] = [];
    try {
      for (const mapping of mappings) {
        opened.push(await listen(mapping, (socket) => this.#forward(socket, sandboxId, mapping.guest)));
      }
    } catch (error) {
      await Promise.all(opened.map(stopListening));
      throw error;
    }
    this.#listeners.set(sandboxId, opened);
  }

  async close(sandboxId: string): Promise<void> {
    const listeners = this.#listeners.get(sandboxId) ?? [];
    this.#listeners.delete(sandboxId);
    await Promise.all(listeners.map(stopListening));
  }

  async closeAll(): Promise<void> {
    await Promise.all([...this.#listeners.keys()].map((sandboxId) => this.close(sandboxId)));
  }

  async #forward(socket: Socket, sandboxId: string, guestPort: number): Promise<void> {
    try {
      const channel = await this.#openChannel(sandboxId, AbortSignal.timeout(CONNECT_TIMEOUT_MS));
      try {
        const stream = await channel.connectTcp(LOOPBACK, guestPort);
        await Promise.all([pipeline(stream.readable, socket), sendAll(socket, stream)]);
      } finally {
        channel.close();
      }
    } catch (error) {
      this.#logger.debug({ sandboxId, guestPort, err: error }, 'a forwarded connection ended');
    } finally {
      socket.destroy();
    }
  }
}

interface Listener {
  readonly server: Server;
  readonly sockets: Set<Socket>;
}

async function listen(
  { host: port, bind = LOOPBACK }: PortMapping,
  forward: (socket: Socket) => Promise<void>,
): Promise<Listener> {
  const sockets = new Set<Socket>();
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    sockets.add(socket);
    socket.on('error', () => socket.destroy());
    socket.once('close', () => sockets.delete(socket));
    void forward(socket);
  });
  try {
    // SAFETY: loopback, or an address that the operator lets callers publish on; see publish-ports.ts.
    server.listen({ host: bind, port });
    await once(server, 'listening');
  } catch (error) {
    const reason = error instanceof Error && 'code' in error ? String(error.code) : 'unknown';
    const message = `port ${port} of this host cannot be opened (${reason}); choose another one`;
    throw new PlatformError('start_failed', message, { details: { port, reason }, cause: error });
  }
  return { server, sockets };
}

async function stopListening({ server, sockets }: Listener): Promise<void> {
  const closed = once(server, 'close');
  server.close();
  for (const socket of sockets) socket.destroy();
  await closed;
}

async function sendAll(socket: Socket, stream: TcpStream): Promise<void> {
  for await (const chunk of readHalf(socket)) await stream.write(chunk);
  await stream.end();
}
