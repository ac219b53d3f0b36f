import { once } from 'node:events';
import type { Server } from 'node:net';

/**
 * Waits until the server listens. Later errors are connections that could not be accepted, for want of descriptors or memory: each
 * caller sees its own closed, and without a listener for the error it would end the process.
 */
export async function untilListening(server: Server): Promise<void> {
  if (!server.listening) await once(server, 'listening');
  server.on('error', () => undefined);
}
