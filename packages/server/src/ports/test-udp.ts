import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import type { TestContext } from 'node:test';

/** A socket on loopback that is gone after the test. */
export async function openUdp(t: TestContext): Promise<Socket> {
  const socket = await listening();
  t.after(() => socket.close());
  return socket;
}

export async function freeUdpPort(): Promise<number> {
  const socket = await listening();
  const { port } = socket.address();
  socket.close();
  return port;
}

async function listening(): Promise<Socket> {
  const socket = createSocket('udp4');
  socket.bind(0, '127.0.0.1');
  await once(socket, 'listening');
  return socket;
}
