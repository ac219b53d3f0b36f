import { once } from 'node:events';
import { createServer, type Socket } from 'node:net';
import { pipeline } from 'node:stream/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { ChannelError, type ChannelClient, type TcpStream } from '@svc/contract';
import type { OpenPort, PortTarget } from './open-port.ts';
import { readHalf } from './read-half.ts';

const LOOPBACK = '127.0.0.1';
/** How long a connection waits for a program that does not listen yet. */
const LISTENS_WITHIN_MS = 10_000;
const ATTEMPT_PAUSE_MS = 50;

/** Each connection has a channel of its own, so that a slow one holds up no other. @throws what listening fails with */
export async function openTcpPort(
  { address: host, port }: { readonly address: string; readonly port: number },
  target: PortTarget,
): Promise<OpenPort> {
  const sockets = new Set<Socket>();
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    if (!target.mayEnter(socket.remoteAddress ?? '')) {
      socket.resetAndDestroy();
      return;
    }
    sockets.add(socket);
    socket.on('error', () => socket.destroy());
    socket.once('close', () => sockets.delete(socket));
    void forward(socket, target);
  });
  server.listen({ host, port });
  await once(server, 'listening');
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
  { sandboxId, guestPort, openChannel, logger }: PortTarget,
): Promise<void> {
  try {
    const channel = await openChannel();
    try {
      const stream = await connectWhenListening(channel, guestPort, socket);
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

/** Whoever comes before the program listens waits for it: it may just be starting. @throws what the last attempt failed with */
async function connectWhenListening(
  channel: ChannelClient,
  guestPort: number,
  socket: Socket,
): Promise<TcpStream> {
  const deadline = performance.now() + LISTENS_WITHIN_MS;
  for (;;) {
    try {
      return await channel.connectTcp(LOOPBACK, guestPort);
    } catch (error) {
      const isRefused = error instanceof ChannelError && error.kind === 'refused';
      if (!isRefused || socket.destroyed || performance.now() > deadline) throw error;
      await delay(ATTEMPT_PAUSE_MS);
    }
  }
}

async function sendAll(socket: Socket, stream: TcpStream): Promise<void> {
  for await (const chunk of readHalf(socket)) await stream.write(chunk);
  await stream.end();
}
