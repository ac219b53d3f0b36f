import { once } from 'node:events';
import type { Server } from 'node:net';

/**
 * Waits until the server listens. Later errors mean connections that could not be accepted for lack of descriptors or memory: the
 * client sees its connection closed. Without an error listener such an error would end the process.
 */
export async function untilListening(server: Server): Promise<void> {
  if (!server.listening) await once(server, 'listening');
  server.on('error', () => undefined);
}
