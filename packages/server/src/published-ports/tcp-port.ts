import { once } from 'node:events';
import { createServer, type Socket } from 'node:net';
import { pipeline } from 'node:stream/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { untilListening } from '@svc/contract/node-listen';
import { ChannelError, PlatformError, type ChannelClient, type TcpStream } from '@svc/contract';
import type { OpenPort, PortTarget } from './open-port.ts';
import { readHalf } from './read-half.ts';

const LOOPBACK = '127.0.0.1';
const FIRST_PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 400;

/** How long a connection waits for a service that does not listen. */
export interface ConnectTimeouts {
  /** While none has listened since the port was opened: the sandbox may be starting, and then its program. */
  readonly firstMs: number;
  /** Afterwards: it may have been started anew. */
  readonly againMs: number;
}

const TIMEOUTS: ConnectTimeouts = { firstMs: 60_000, againMs: 10_000 };

/** Each connection has a channel of its own, so that a slow one holds up no other. @throws what listening fails with */
export async function openTcpPort(
  { address: host, port }: { readonly address: string; readonly port: number },
  target: PortTarget,
  timeouts = TIMEOUTS,
): Promise<OpenPort> {
  const sockets = new Set<Socket>();
  const service = new Service(target, timeouts);
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    if (!target.mayEnter(socket.remoteAddress ?? '')) {
      socket.resetAndDestroy();
      return;
    }
    sockets.add(socket);
    socket.on('error', () => socket.destroy());
    socket.once('close', () => sockets.delete(socket));
    void forward(socket, target, service);
  });
  server.listen({ host, port });
  await untilListening(server);
  return {
    close: async () => {
      const closed = once(server, 'close');
      server.close();
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}

async function forward(
  socket: Socket,
  { sandboxId, guestPort, logger }: PortTarget,
  service: Service,
): Promise<void> {
  try {
    const { channel, stream } = await service
      .connect(() => socket.destroyed)
      .catch((error: unknown) => {
        // An end would say that the service had nothing to say.
        socket.resetAndDestroy();
        throw error;
      });
    try {
      await Promise.all([pipeline(stream.readable, socket), sendAll(socket, stream)]);
    } finally {
      channel.close();
    }
  } catch (error) {
    logger.debug({ sandboxId, guestPort, err: error }, 'a forwarded connection ended');
  } finally {
    socket.destroy();
  }
}

/** The service behind a published port; connections wait until it listens. */
class Service {
  readonly #target: PortTarget;
  readonly #timeouts: ConnectTimeouts;
  #hasListened = false;

  constructor(target: PortTarget, timeouts: ConnectTimeouts) {
    this.#target = target;
    this.#timeouts = timeouts;
  }

  /** Connects, retrying until the service listens. @throws the error of the last attempt */
  async connect(hasLeft: () => boolean): Promise<{ channel: ChannelClient; stream: TcpStream }> {
    const since = performance.now();
    let channel: ChannelClient | undefined;
    for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS)) {
      try {
        channel ??= await this.#target.openChannel();
        const stream = await channel.connectTcp(LOOPBACK, this.#target.guestPort);
        this.#hasListened = true;
        return { channel, stream };
      } catch (error) {
        const { firstMs, againMs } = this.#timeouts;
        const isOver = performance.now() - since >= (this.#hasListened ? againMs : firstMs);
        const mayGoOn = !isOver && !hasLeft() && mayPass(error);
        if (!mayGoOn || !isRefused(error)) {
          channel?.close();
          channel = undefined;
        }
        if (!mayGoOn) throw error;
        await delay(pauseMs);
      }
    }
  }
}

function isRefused(error: unknown): boolean {
  return error instanceof ChannelError && error.kind === 'refused';
}

/** No program listens, or the sandbox does not run: ports are opened before it starts, and closed when it ends. */
function mayPass(error: unknown): boolean {
  return (
    error instanceof ChannelError ||
    PlatformError.is(error) ||
    (error as Error | null)?.name === 'TimeoutError'
  );
}

async function sendAll(socket: Socket, stream: TcpStream): Promise<void> {
  for await (const chunk of readHalf(socket)) await stream.write(chunk);
  await stream.end();
}
