import { once } from 'node:events';
import { createServer, type Socket } from 'node:net';
import { pipeline } from 'node:stream/promises';
import type { TcpStream } from '@svc/contract';
import type { OpenPort, PortTarget } from './open-port.ts';
import { readHalf } from './read-half.ts';

const LOOPBACK = '127.0.0.1';

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
      const stream = await channel.connectTcp(LOOPBACK, guestPort);
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

async function sendAll(socket: Socket, stream: TcpStream): Promise<void> {
  for await (const chunk of readHalf(socket)) await stream.write(chunk);
  await stream.end();
}
