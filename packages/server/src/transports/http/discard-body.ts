import type { IncomingMessage } from 'node:http';

/** How long somebody may go on sending what nobody wants. */
const LINGER_MS = 5000;

/**
 * Reads the rest of a body and forgets it. Closing the connection at once would take the answer with it: a sender that is
 * still busy sees a broken connection, never the reason.
 */
export function discardBody(request: IncomingMessage): void {
  if (request.complete) return;
  // Whoever read it before has given up; as long as it listens nothing flows.
  request.removeAllListeners('readable');
  request.resume();
  const timer = setTimeout(() => request.socket.destroy(), LINGER_MS);
  timer.unref();
  request.once('close', () => clearTimeout(timer));
}
