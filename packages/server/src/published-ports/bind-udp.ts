import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import { isIPv6 } from 'node:net';

/** Requested from the kernel for bursts; it may give less. */
const BUFFER_BYTES = 4 * 1024 * 1024;

/** Binds a socket to this port of this address alone. @throws the error of binding */
export async function bindUdp({
  address,
  port,
}: {
  readonly address: string;
  readonly port: number;
}): Promise<Socket> {
  const socket = createSocket({
    ...(isIPv6(address) ? { type: 'udp6', ipv6Only: true } : { type: 'udp4' }),
    recvBufferSize: BUFFER_BYTES,
    sendBufferSize: BUFFER_BYTES,
  });
  try {
    socket.bind({ address, port, exclusive: true });
    await once(socket, 'listening');
    return socket;
  } catch (error) {
    socket.close();
    throw error;
  }
}
