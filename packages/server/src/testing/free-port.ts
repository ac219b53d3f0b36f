import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { createServer } from 'node:net';

/** Below the kernel's range of ephemeral ports, so that no socket gets one of these by chance. */
const FIRST = 10_000;
const COUNT = 22_000;
/** Processes whose tests run at the same time begin at different numbers. */
let next = process.pid * 13;

/** A free port of 127.0.0.1 outside the ephemeral range: it stays free until it is bound by its number. */
export async function freePort(protocol: 'tcp' | 'udp' = 'tcp'): Promise<number> {
  for (let attempt = 0; attempt < COUNT; attempt += 1) {
    const port = FIRST + (next++ % COUNT);
    if (await (protocol === 'tcp' ? isFreeTcp(port) : isFreeUdp(port))) return port;
  }
  throw new Error('every port is taken');
}

async function isFreeTcp(port: number): Promise<boolean> {
  const server = createServer();
  try {
    const listening = once(server, 'listening');
    server.listen(port, '127.0.0.1');
    await listening;
  } catch {
    // The port is in use.
    return false;
  }
  const closed = once(server, 'close');
  server.close();
  await closed;
  return true;
}

async function isFreeUdp(port: number): Promise<boolean> {
  const socket = createSocket('udp4');
  const closed = once(socket, 'close');
  try {
    const listening = once(socket, 'listening');
    socket.bind({ port, address: '127.0.0.1', exclusive: true });
    await listening;
    return true;
  } catch {
    // The port is in use.
    return false;
  } finally {
    socket.close();
    await closed.catch(() => undefined);
  }
}
