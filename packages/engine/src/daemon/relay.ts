import type { Duplex } from 'node:stream';
import type { SessionRelay } from '../guest/session-relay.ts';
import type { Sandboxes } from '../sandboxes/sandboxes.ts';
import { joinSockets } from './join-sockets.ts';
import { decodePart, type UpgradeHandler } from './http-server.ts';

const ACCEPTED = Buffer.from(
  'HTTP/1.1 101 Switching Protocols\r\nconnection: Upgrade\r\nupgrade: svc-channel\r\n\r\n',
);

/**
 * Joins a caller to a connection of svc-init, byte for byte. Each side is read only as fast as the other takes it; when
 * the caller leaves, svc-init is told to end what it started.
 */
export function createRelay(sandboxes: Sandboxes, relay: Pick<SessionRelay, 'join'>): UpgradeHandler {
  return async (path, socket, head) => {
    const id = /^\/sandboxes\/(?<id>[^/]+)\/channel$/.exec(path)?.groups?.['id'] ?? '';
    const { session, wake, leave } = await sandboxes.get(decodePart(id)).openSession();
    const guest = session.socket;
    if (socket.destroyed) return leave();
    // What svc-init has said already goes along: a client that has both need not wait twice.
    const greeting = guest.read() as Buffer | null;
    socket.write(greeting === null ? ACCEPTED : Buffer.concat([ACCEPTED, greeting]));
    if (head.length > 0) guest.write(head);
    onceOver(socket, leave);
    // A caller that keeps its connection finds the sandbox at rest when it asks for something after a while.
    const isJoined = await relay.join(socket, guest, wake);
    if (!isJoined) joinSockets(socket, guest, wake);
    return undefined;
  };
}

/** A caller that ends its half has left too: nothing of ours sends a half close. */
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
