import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import type { TestContext } from 'node:test';

/** A socket on loopback that is closed after the test. */
export async function openUdp(t: TestContext): Promise<Socket> {
  const socket = createSocket('udp4');
  t.after(() => socket.close());
  const listening = once(socket, 'listening');
  socket.bind(0, '127.0.0.1');
  await listening;
  return socket;
}
