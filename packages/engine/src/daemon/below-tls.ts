import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { Server, TLSSocket } from 'node:tls';

const below = new WeakMap<Duplex, Socket>();

/** Remembers the TCP connection below each TLS connection of a server. Call it before the server listens. */
export function rememberTcp(server: Server): void {
  const open = new Map<string, Socket>();
  server.prependListener('connection', (socket: Socket) => {
    const key = keyOf(socket);
    open.set(key, socket);
    // TLS reports it too, and ends.
    socket.on('error', () => socket.destroy());
    socket.once('close', () => open.delete(key));
  });
  server.prependListener('secureConnection', (socket: TLSSocket) => {
    const tcp = open.get(keyOf(socket));
    if (tcp !== undefined) below.set(socket, tcp);
  });
}

/** The TCP connection below a TLS connection; any other stream itself. */
export function tcpOf(socket: Duplex): Duplex {
  return below.get(socket) ?? socket;
}

function keyOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`;
}
