import { createServer, type AddressInfo } from 'node:net';
import { untilListening } from '@svc/contract/node-listen';
import type { TransparentProxy } from './transparent-proxy.ts';

/**
 * Accepts connections from an inherited transparent socket: the local address of each connection is the destination that the sandbox
 * dialled. Resolves to the port that the socket is bound to.
 */
export async function listenTransparently(descriptor: number, proxy: TransparentProxy): Promise<number> {
  const server = createServer({ allowHalfOpen: true, pauseOnConnect: true }, (client) => {
    const { localAddress: address, localPort: port } = client;
    if (address === undefined || port === undefined) client.destroy();
    else proxy.accept(client, { address, port });
  });
  server.listen({ fd: descriptor });
  await untilListening(server);
  return (server.address() as AddressInfo).port; // A TCP socket.
}
