import type { Sandboxes } from '../sandboxes/sandboxes.ts';
import { joinSockets } from './join-sockets.ts';
import { decodePart, type UpgradeHandler } from './http-server.ts';

const ACCEPTED = Buffer.from(
  'HTTP/1.1 101 Switching Protocols\r\nconnection: Upgrade\r\nupgrade: svc-channel\r\n\r\n',
);

/**
 * Connects a caller to a connection of svc-init, byte for byte. When the caller leaves, svc-init is told to end what the caller
 * started, before the connection ends.
 */
export function createRelay(sandboxes: Sandboxes): UpgradeHandler {
  return async (path, socket, head) => {
    const id = /^\/sandboxes\/(?<id>[^/]+)\/channel$/.exec(path)?.groups?.['id'] ?? '';
    const { session, wake, leave } = await sandboxes.get(decodePart(id)).openSession();
    const guest = session.socket;
    if (socket.destroyed) return leave();
    // Bytes that svc-init has sent already go along: a client gets both in one round trip.
    const greeting = guest.read() as Buffer | null;
    socket.write(greeting === null ? ACCEPTED : Buffer.concat([ACCEPTED, greeting]));
    if (head.length > 0) guest.write(head);
    socket.once('close', leave);
    // The sandbox may be at rest when a caller sends a request on an old connection: each request wakes it.
    joinSockets(socket, guest, wake);
    return undefined;
  };
}
