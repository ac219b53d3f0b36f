import type { Duplex } from 'node:stream';
import type { SessionRelay } from '../guest/session-relay.ts';
import type { Sandboxes } from '../sandboxes/sandboxes.ts';
import { joinSockets } from './join-sockets.ts';
import { decodePart, type UpgradeHandler } from './http-server.ts';

const ACCEPTED = Buffer.from(
  'HTTP/1.1 101 Switching Protocols\r\nconnection: Upgrade\r\nupgrade: svc-channel\r\n\r\n',
);

/**
 * Connects a caller to a connection of svc-init, byte for byte, with back-pressure in both directions. When the caller leaves,
 * svc-init is told to end what the caller started.
 */
export function createRelay(sandboxes: Sandboxes, relay: Pick<SessionRelay, 'join'>): UpgradeHandler {
  return async (path, socket, head) => {
    const id = /^\/sandboxes\/(?<id>[^/]+)\/channel$/.exec(path)?.groups?.['id'] ?? '';
    const { session, wake, leave } = await sandboxes.get(decodePart(id)).openSession();
    const guest = session.socket;
    if (socket.destroyed) return leave();
    // Bytes that svc-init has sent already go along: a client gets both in one round trip.
    const greeting = guest.read() as Buffer | null;
    socket.write(greeting === null ? ACCEPTED : Buffer.concat([ACCEPTED, greeting]));
    if (head.length > 0) guest.write(head);
    onceOver(socket, leave);
    // The sandbox may be at rest when a caller sends a request on an old connection: each request wakes it.
    const isJoined = await relay.join(socket, guest, wake);
    if (!isJoined) joinSockets(socket, guest, wake);
    return undefined;
  };
}

/** A caller that ends its half has left: no client of ours sends a half close. */
function onceOver(stream: Duplex, act: () => void): void {
  let isOver = false;
  const finish = () => {
    if (isOver) return;
    isOver = true;
    act();
  };
  stream.once('end', finish);
  stream.once('close', finish);
  stream.once('error', finish);
}
